"""`mtprof report`: the panel of a recording as a page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mtprof_nb.cli.files_to_read import add_files, loaded
from mtprof_nb.cli.printing import print_to


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    text = "write the panel of a recording as one HTML file, which opens without a server and a network"
    parser = subparsers.add_parser("report", help=text, description=text)
    add_files(parser)
    parser.add_argument("-o", "--out", metavar="PAGE", type=Path, help="the page; default: the file's name in .html")
    parser.add_argument("--name", metavar="LABEL", help="title of the page")
    parser.add_argument("--show-all", action="store_true", help="show Python frames and runtime calls")
    parser.set_defaults(command=_report, parser=parser)


def _report(given: argparse.Namespace) -> int:
    recording = loaded(given)
    page = given.out or Path(f"{Path(given.files[0]).name.partition('.')[0] or 'report'}.html")
    recording.export_html(page, name=given.name, show_all=given.show_all)
    print_to(sys.stdout, str(page))
    return 0
