"""The text of the user's files and the labels of cells, read when a recording ends: both may change afterwards."""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Sequence
from inspect import unwrap
from traceback import walk_stack
from typing import Any

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
    names = {file: shell.compile.format_code_name(file) for file in files}
    numbers = {file: int(name[1].strip("In[]")) for file, name in names.items() if name is not None}
    return {file: _cell_label(shell, file, number) for file, number in numbers.items()}


def _cell_label(shell: Any, file: str, number: int) -> str:
    """`Cell [3]`; `Cell [3] (inner)` for code that cell 3 ran as a cell of its own, as `%%capture` does.

    IPython numbers such code as the next cell, or as the running one. "Cell" if the cell has no number at all.
    """
    running, text = running_cell_number(shell), _text(file).rstrip()
    typed, run = shell.history_manager.input_hist_raw, shell.history_manager.input_hist_parsed
    if (number == running and number >= len(run)) or (number < len(run) and run[number].rstrip() == text):
        return cell_label(number)
    longest = max(map(str.strip, text.splitlines()), key=len, default="")
    around = [one for one in (number, number - 1) if one == running or (one < len(typed) and longest in typed[one])]
    return f"{cell_label(around[0])} (inner)" if around else cell_label(None)


def cell_label(number: int | None) -> str:
    """`Cell [3]`, or "Cell" without a number."""
    return "Cell" if number is None else f"Cell [{number}]"


def running_cell_number(shell: Any) -> int | None:
    """The number of the running cell, also in code that it runs as a cell of its own; None for one without history."""
    runs = getattr(unwrap(type(shell).run_cell_async), "__code__", None)
    for frame, _ in walk_stack(sys._getframe(1)):
        if frame.f_code is runs and frame.f_locals.get("store_history"):
            number: int | None = frame.f_locals["result"].execution_count
            return number
    return None


def _text(file: str) -> str:
    """The text of a file or cell, "" where there is none."""
    try:
        linecache.checkcache(file)
        text = "".join(linecache.getlines(file)).rstrip("\n")
    except (OSError, ValueError):  # no name that a file could have
        return ""
    return text if len(text) <= _MOST_CHARACTERS else ""
