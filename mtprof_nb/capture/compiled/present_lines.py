"""Finds lines of compiled code in the present text of their files: a cache may hold old ones."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterable
from functools import cache

from mtprof_nb.capture.torch_private.inductor_code import SourceFrame
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import Frame, SourceLine

#: Name of the code that runs after a graph break.
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")


def whole_function(name: str) -> str:
    """The name of the function of which `name` is the part after a graph break; "" for others."""
    resumed = _RESUMED.match(name)
    return resumed[1] if resumed else ""


def text_of(file: str) -> str:
    """The present text of a file or cell, "" where there is none."""
    try:
        linecache.checkcache(file)
        return "".join(linecache.getlines(file))
    except (OSError, ValueError):  # no name that a file could have
        return ""


def living_cells() -> list[str]:
    """The files of the notebook's cells that Python still has the text of, the newest last."""
    return [file for file in linecache.cache if is_cell(file)]


Cells = Callable[[], list[str]]


class PresentLines:
    """Where lines are now. Lines that cannot be found for certain are collected in `lost`.

    A line whose text stands once in its file is found. One whose text stands there several times
    is found if all lines that stand there once have moved equally far, and it has too.
    """

    def __init__(self, frames: Iterable[SourceFrame], cells: Cells = living_cells) -> None:
        self.lost: set[SourceLine] = set()
        self._lines = cache(lambda file: [line.strip() for line in text_of(file).splitlines()])
        self._cells = cells
        self._shifts: dict[str, set[int]] = {}
        frames = set(frames)
        files = {frame.file for frame in frames}
        self._files = {file: self._present_file(file, frames) for file in files}
        for frame in frames:
            if len(places := self._places(frame)) == 1:
                self._shifts.setdefault(frame.file, set()).add(places[0] - frame.line)

    def find(self, frame: SourceFrame) -> Frame | None:
        """The frame with the file and the line where its text stands now, or None."""
        file, places = self._files.get(frame.file, frame.file), self._places(frame)
        shifts = self._shifts.get(frame.file, {0})
        if len(places) > 1:
            places = [place for place in places if {place - frame.line} == shifts]
        if len(places) != 1:
            self.lost.add(SourceLine(frame.file, frame.line))
            return None
        return Frame(file, places[0], whole_function(frame.function) or frame.function)

    def _places(self, frame: SourceFrame) -> list[int]:
        lines = self._lines(self._files.get(frame.file, frame.file))
        if not lines or not frame.code:
            return []
        return [number for number, line in enumerate(lines, 1) if line == frame.code]

    def _present_file(self, file: str, frames: set[SourceFrame]) -> str:
        """The file itself; for a cell of a kernel that has ended, the only cell with its lines."""
        if self._lines(file) or not is_cell(file):
            return file
        codes = {frame.code for frame in frames if frame.file == file}
        same = [cell for cell in self._cells() if codes <= set(self._lines(cell))]
        texts = {tuple(self._lines(cell)) for cell in same}
        return same[-1] if len(texts) == 1 else file


def first_line_of_function(file: str, line: int) -> int:
    """The first line of the innermost function around a line, `line` itself if none is known."""
    try:
        tree = ast.parse(text_of(file))
    except (SyntaxError, ValueError, RecursionError):
        return line
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
    firsts = [min([node.lineno, *(one.lineno for one in node.decorator_list)]) for node in around]
    return max(firsts, default=line)
