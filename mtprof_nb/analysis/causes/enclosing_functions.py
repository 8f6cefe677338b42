"""Functions of the recorded source, and the lines in them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable

from mtprof_nb.model.trace import SourceLine, Trace


def lines_of_functions(trace: Trace, lines: Iterable[SourceLine]) -> set[SourceLine]:
    """All lines of the innermost functions around `lines`, as far as their source is recorded and can be read."""
    found = set()
    for line in lines:
        if body := _function_around(trace.sources.get(line.file, ""), line.line):
            found |= {SourceLine(line.file, number) for number in body}
    return found


def _function_around(source: str, line: int) -> range | None:
    """The lines of the innermost function that contains `line`; None without one."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(_without_magics(source))
    except (SyntaxError, ValueError):
        return None
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    bodies = [range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in functions]
    return min((body for body in bodies if line in body), key=len, default=None)


def _without_magics(source: str) -> str:
    """The text of a cell with comments in place of its magics, which Python cannot read."""
    lines = source.splitlines()
    return "\n".join("#" + line if line.startswith(("%", "!")) else line for line in lines)
