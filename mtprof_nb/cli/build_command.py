"""`mtprof build`: compile the native recorder."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mtprof_nb.cli.printing import print_to
from mtprof_nb.errors import BuildError


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    text = "compile the native recorder for the installed PyTorch and Python, once"
    parser = subparsers.add_parser("build", help=text, description=text)
    parser.add_argument("--force", action="store_true", help="compile it again where it exists")
    parser.add_argument("--if-possible", action="store_true", help="if it cannot be built, say so and succeed")
    parser.set_defaults(command=_build, parser=parser)


def _build(given: argparse.Namespace) -> int:
    from mtprof_nb.capture.native.recorder_build import build_recorder, earlier_failure, is_built

    try:
        if given.if_possible and not given.force and (failure := earlier_failure()):
            raise BuildError(failure)
        if given.force or not is_built():
            print("compiling the native recorder, which takes less than a minute", file=sys.stderr)  # noqa: T201
        print_to(sys.stdout, str(build_recorder(given.force)))
    except BuildError as error:
        if not given.if_possible:
            raise
        print(f"mtprof_nb: without the native recorder: {error}", file=sys.stderr)  # noqa: T201
    return 0
