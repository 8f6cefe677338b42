"""`mtprof show`: the text tables of a recording."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mtprof_nb.cell.options import OPTIONS
from mtprof_nb.cli.files_to_read import add_files, loaded
from mtprof_nb.cli.printing import print_to

_SHOWN = ("sort", "limit", "show_all")


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    text = "print the tables of a recording"
    parser = subparsers.add_parser("show", help=text, description=text, argument_default=argparse.SUPPRESS)
    flags = parser.add_argument_group("flags")
    for option in OPTIONS:
        if option.dest in _SHOWN:
            option.add_to(flags)
    add_files(parser)
    parser.set_defaults(command=_show, parser=parser)


def _show(given: argparse.Namespace) -> int:
    from mtprof_nb.views.panel.show_panel import scene_of
    from mtprof_nb.views.static.static_page import text

    recording = loaded(given)
    options = {name: getattr(given, name) for name in _SHOWN if hasattr(given, name)}
    print_to(sys.stdout, text(scene_of(recording.trace, name=recording.name, **options)))
    return 0
