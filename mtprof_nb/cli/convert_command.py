"""`mtprof convert`: a recording in another format."""

from __future__ import annotations

import argparse
from typing import Any

from mtprof_nb.cell.options import trace_file
from mtprof_nb.export.by_suffix import SUFFIXES


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    text = "write a recording in another format"
    parser = subparsers.add_parser("convert", help=text, description=text)
    parser.add_argument("source", metavar="IN", help="a file, a folder or a pattern")
    parser.add_argument("target", metavar="OUT", type=trace_file, help=f"the file to write: {', '.join(SUFFIXES)}")
    parser.set_defaults(command=_convert, parser=parser)


def _convert(given: argparse.Namespace) -> int:
    from mtprof_nb.export import by_suffix
    from mtprof_nb.loading.recordings import load

    by_suffix.write(load(given.source).trace, given.target)
    return 0
