"""A table as Markdown, to paste into an issue or a chat."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.tables.table import TEXTS, Table, TableColumn

_WIDEST = 100
#: Characters that mean something in Markdown text, and those that do where a paragraph begins.
_SIGNS, _FIRST_SIGNS = re.compile(r"([\\`*_\[\]<>|~&])"), re.compile(r"^([-+#=])")


def as_markdown(table: Table) -> str:
    """The sentence, the rows under their titles, and the notes; "" without any."""
    table = table.plain()
    columns = table.columns
    head = _row(marked(column.title) for column in columns)
    rule = _row("---" if column.unit in TEXTS else "---:" for column in columns)
    body = [_row(map(_cell, columns, texts)) for texts in table.texts()]
    rows = "\n".join((head, rule, *body)) if body else ""
    return "\n\n".join(filter(None, (marked(table.sentence), rows, *map(marked, table.notes))))


def marked(text: str) -> str:
    """A paragraph that Markdown shows letter by letter."""
    return _FIRST_SIGNS.sub(r"\\\1", _inert(text, LONGEST_SENTENCE))


def _inert(text: str, longest: int) -> str:
    return _SIGNS.sub(r"\\\1", shown(text, longest).strip())


def code_block(text: str) -> str:
    """Lines of code as a block, which no character of theirs can end."""
    return "\n".join(f"    {shown(line, LONGEST_SENTENCE)}" for line in text.splitlines())


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(column: TableColumn, text: str) -> str:
    """A cell; code is shown letter by letter, but for a backtick."""
    if column.unit != "code":
        return _inert(text, _WIDEST)
    code = shown(text, _WIDEST).replace("`", "'").replace("|", "\\|").strip()
    return f"`{code}`" if code else ""
