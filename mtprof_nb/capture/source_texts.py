"""The text of the user's files and the labels of cells, read when a recording ends: both may change afterwards."""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Sequence

from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Columns

#: Larger texts are left out: nobody wrote them by hand.
_MOST_CHARACTERS = 2_000_000


def sources(fields: Columns) -> Columns:
    """`sources`, with the present text of each of the user's files that has a frame or a marked line, and `cells`."""
    trees = [tree for tree in (fields["stacks"], fields["line_stacks"]) if tree is not None]
    places = itertools.chain(*(tree.frames for tree in trees), fields["lines"])
    known: dict[str, str] = dict(fields["sources"])
    files = sorted({place.file for place in places} | known.keys())
    texts = {file: text for file in files if file not in known and is_user_file(file) and (text := _text(file))}
    return {"sources": known | texts, "cells": _cells(files)}


def _cells(files: Sequence[str]) -> dict[str, str]:
    """The labels of those files that are cells of the running notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return {}
    labels = {file: shell.compile.format_code_name(file) for file in files}
    return {file: f"{label[0]} {label[1].removeprefix('In')}" for file, label in labels.items() if label is not None}


def _text(file: str) -> str:
    """The text of a file or cell, "" where there is none."""
    try:
        linecache.checkcache(file)
        text = "".join(linecache.getlines(file)).rstrip("\n")
    except (OSError, ValueError):  # no name that a file could have
        return ""
    return text if len(text) <= _MOST_CHARACTERS else ""
