"""Parses the command line of `mtprof` and runs the subcommand that it names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mtprof_nb import __version__
from mtprof_nb.cli import build_command, compare_command, convert_command, report_command, run_command, show_command
from mtprof_nb.cli.arguments import Parser, UsageError
from mtprof_nb.errors import MtprofError

_COMMANDS = (run_command, show_command, report_command, convert_command, compare_command, build_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `mtprof` with `arguments`, those of the process by default, and return its exit status.

    A mistake in the arguments exits with status 2; an error of the package is one line on stderr and status 1.
    """
    given = _parser().parse_args(arguments)
    try:
        status: int = given.command(given)
    except UsageError as error:
        given.parser.error(str(error))
    except MtprofError as error:
        print(f"{given.parser.prog}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return status


def _parser() -> Parser:
    parser = Parser(_name(), description="Profile tensor programs in a terminal.")
    parser.add_argument("--version", action="version", version=f"mtprof_nb {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(subparsers)
    return parser


def _name() -> str:
    """The program as the user called it."""
    called = Path(sys.argv[0]).name
    return "python -m mtprof_nb" if called == "__main__.py" else called
