"""Words, functions, loops and expressions of the recorded source."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

from mtprof_nb.model.trace import SourceLine, Trace

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMMENT = re.compile(r"#[^\n]*")


def line_text(trace: Trace, line: SourceLine | None) -> str:
    """The recorded text of a line, "" where it is not known."""
    texts = trace.sources.get(line.file, "").splitlines() if line else []
    return texts[line.line - 1] if line and 0 < line.line <= len(texts) else ""


def line_has(trace: Trace, line: SourceLine | None, words: re.Pattern[str]) -> bool:
    """Whether the recorded text of a line has such words; a comment does not count."""
    return bool(words.search(_COMMENT.sub("", line_text(trace, line))))


def code_has(trace: Trace, files: Iterable[str], words: re.Pattern[str]) -> bool:
    """Whether the recorded code of one of these files has such words; comments do not count."""
    return any(words.search(_COMMENT.sub("", trace.sources.get(file, ""))) for file in files)


def lines_of_functions(trace: Trace, lines: Iterable[SourceLine]) -> set[SourceLine]:
    """All lines of the innermost functions around `lines`, as far as their source is recorded and can be read."""
    inside = set()
    for line in lines:
        if body := _function_around(trace.sources.get(line.file, ""), line.line):
            inside |= {SourceLine(line.file, number) for number in body}
    return inside


def lines_of_loop(trace: Trace, line: SourceLine) -> set[SourceLine]:
    """All lines of the innermost loop whose first line this is, or of the comprehension on it; empty without one."""
    nodes = list(_nodes(trace.sources.get(line.file, "")))
    loops = [_lines(node) for node in nodes if isinstance(node, ast.For) and line.line in _lines(node.iter)]
    loops += [_lines(node) for node in nodes if isinstance(node, _COMPREHENSIONS) and line.line in _lines(node)]
    return {SourceLine(line.file, number) for number in min(loops, key=len, default=())}


def nested_operators(trace: Trace, line: SourceLine) -> int:
    """How many operators of the statement on this line take the result of one another, as three in `a * b * c * d`.

    0 without one statement that can be read there, and if it computes elsewhere, too, or a product of matrices.
    """
    nodes = _nodes(trace.sources.get(line.file, ""))
    statements = [node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    on_line = [one for one in statements if line.line in _lines(one)]
    operators = [node for node in ast.walk(on_line[0]) if isinstance(node, ast.BinOp)] if len(on_line) == 1 else []
    operands = {id(operand) for node in operators for operand in (node.left, node.right)}
    outermost = [node for node in operators if id(node) not in operands]
    if len(outermost) != 1 or any(isinstance(node.op, ast.MatMult) for node in operators):
        return 0
    return _depth(outermost[0])


def _depth(node: ast.expr) -> int:
    return 1 + max(_depth(node.left), _depth(node.right)) if isinstance(node, ast.BinOp) else 0


def _function_around(source: str, line: int) -> range | None:
    """The lines of the innermost function that contains `line`; None without one."""
    functions = (node for node in _nodes(source) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return min((body for body in map(_lines, functions) if line in body), key=len, default=None)


def _nodes(source: str) -> Iterator[ast.AST]:
    """The parts of a program; none where it cannot be read."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.walk(ast.parse(_without_magics(source)))
    except (SyntaxError, ValueError):
        return iter(())


def _lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _without_magics(source: str) -> str:
    """The text of a cell with comments in place of its magics, which Python cannot read."""
    lines = source.splitlines()
    return "\n".join("#" + line if line.startswith(("%", "!")) else line for line in lines)
