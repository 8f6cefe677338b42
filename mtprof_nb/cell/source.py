"""Rewrites a cell that begins with `%%mtprofile`: a call that starts the recording replaces its first line.

The text is rewritten rather than run by the magic, so that everything the cell does (its last expression, `await`,
its tracebacks, its entry in the history) works as in any cell. Both transformers are pure: a kernel transforms one
cell more than once.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from IPython.core import inputtransformer2 as steps
from IPython.core.error import UsageError

from mtprof_nb.cell.flags import PARSER

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

MAGIC = "mtprofile"
_FIRST_LINE = re.compile(rf"%%{MAGIC}(?:[ \t]+(?P<flags>.*?))?\s*")
#: What IPython does to the beginning of any cell, and so to the line after ours.
_CLEANUP = (steps.leading_empty_lines, steps.leading_indent, steps.classic_prompt, steps.ipython_prompt)
_BEGIN = f"get_ipython().run_cell_magic({MAGIC!r}, "
_RETURN = f"get_ipython().find_cell_magic({MAGIC!r}).__self__.recorded()\n"


def profiled(lines: list[str]) -> list[str]:
    """The cell with its first line, if that is `%%mtprofile`, replaced by the call that begins the recording."""
    match = _FIRST_LINE.fullmatch(lines[0]) if lines else None
    if match is None:
        return lines
    flags = match["flags"] or ""
    given = _given(flags)
    begin = f"{_BEGIN}{flags!r}, None)\n"
    if given.get("help"):
        return [begin]
    body = lines[1:]
    # A cell for engines is the magic's to run.
    if given.get("ranks") or not "".join(body).strip():
        return lines
    return [begin, *_as_if_first(body), *([_RETURN] if given.get("returns") else [])]


#: Without this mark IPython's terminal would take the first line alone for a complete cell.
profiled.has_side_effects = True  # type: ignore[attr-defined]


def _given(flags: str) -> dict[str, object]:
    """The flags where they can be read: a wrong one is reported when the call runs, not while text is rewritten."""
    try:
        return PARSER.read(flags)[0]
    except UsageError:
        return {}


def _as_if_first(body: list[str]) -> list[str]:
    """The lines as IPython reads a cell that begins with them; each keeps its line number."""
    count = len(body)
    for transform in _CLEANUP:
        body = transform(body)
    skipped = ["\n"] * (count - len(body))
    rewritten: list[str] = steps.cell_magic(profiled(body))
    return skipped + rewritten


class OneLiner:
    """Gives a body of one line what IPython gives a cell of one line: automagic, autocall, `exit`."""

    def __init__(self, ip: InteractiveShell) -> None:
        self._ip = ip

    def __call__(self, lines: list[str]) -> list[str]:
        if not lines or not lines[0].startswith(_BEGIN):
            return lines
        end = -1 if lines[-1] == _RETURN else len(lines)
        before, body, after = lines[:1], lines[1:end], lines[end:]
        while body and body[0].isspace():
            before.append(body.pop(0))
        if len(body) != 1:
            return lines
        with self._ip.builtin_trap:
            return [*before, self._ip.prefilter_manager.prefilter_lines(body[0]) + "\n", *after]


def flags_of(tree: ast.Module) -> str | None:
    """The flags of a cell, parsed after the rewriting, that begins a recording; None for any other cell."""
    match tree.body:
        case [
            ast.Expr(ast.Call(ast.Attribute(attr="run_cell_magic"), [ast.Constant(name), ast.Constant(flags), *_])),
            *_,
        ]:
            return str(flags) if name == MAGIC else None
    return None


def is_profiled(tree: ast.Module) -> bool:
    """Whether a cell, parsed after the rewriting, begins a recording."""
    return flags_of(tree) is not None
