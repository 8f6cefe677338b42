"""`mtprof convert`: a recording in another format."""

from __future__ import annotations

import argparse
from typing import Any

from mtprof_nb.cell.options import trace_file
from mtprof_nb.cli.files_to_read import add_files, loaded
from mtprof_nb.export import by_suffix


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    text = "write a recording in another format"
    parser = subparsers.add_parser("convert", help=text, description=text)
    add_files(parser, "IN")
    parser.add_argument(
        "target", metavar="OUT", type=trace_file, help=f"the file to write: {', '.join(by_suffix.SUFFIXES)}"
    )
    parser.set_defaults(command=_convert, parser=parser)


def _convert(given: argparse.Namespace) -> int:
    by_suffix.write(loaded(given).trace, given.target)
    return 0
