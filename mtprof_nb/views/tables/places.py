"""Where a line of source stands, as its reader knows it."""

from __future__ import annotations

import re

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import Trace
from mtprof_nb.results.line_table import file_label

#: What stands before the name of an installed package, or of a module of Python's own.
_LIBRARY = re.compile(r".*[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]")


def place(file: str, line: int) -> str:
    """`Cell [3]:4`; `torch/nn/functional.py:12` of an installed package; any other file with its whole path."""
    label = file_label(file)
    return f"{label if label.startswith('Cell [') else _LIBRARY.sub('', file, count=1)}:{line}"


def place_of(trace: Trace, event: int) -> str:
    """Where the line stands that caused an event, "" for no event and where the line is not known."""
    caused = attribution(trace)
    line = int(caused.line[event]) if event >= 0 else -1
    return place(*caused.lines[line]) if line >= 0 else ""
