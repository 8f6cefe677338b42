"""The recordings that subcommands read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtprof_nb.recording import Recording


def add_files(parser: Any, metavar: str = "FILE") -> None:
    """Let a subcommand take one recording."""
    text = "a file, a folder or a pattern; many files are the processes of one recording"
    parser.add_argument("files", nargs="+", metavar=metavar, help=text)
    text = "read what is readable of a damaged Chrome trace"
    parser.add_argument("--partial", action="store_true", default=False, help=text)


def loaded(given: argparse.Namespace) -> Recording:
    """The recording; `LoadError` if it cannot be read."""
    from mtprof_nb.loading.recordings import load

    return load(given.files if len(given.files) > 1 else given.files[0], partial=given.partial)
