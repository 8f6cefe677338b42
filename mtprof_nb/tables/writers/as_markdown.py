"""A table as Markdown, to paste into an issue or a chat."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.tables.table import TEXTS, Table, TableColumn

_WIDEST = 100
#: Characters that mean something in Markdown text, some of them only where a paragraph begins.
_MEANING = re.compile(r"([\\`*_\[\]<>|~&]|^[-+#=])")


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
    """A text that Markdown shows letter by letter."""
    return _MEANING.sub(r"\\\1", shown(text, LONGEST_SENTENCE).strip())


def code_block(text: str) -> str:
    """Lines of code as a block, which no character of theirs can end."""
    return "\n".join(f"    {shown(line, LONGEST_SENTENCE)}" for line in text.splitlines())


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(column: TableColumn, text: str) -> str:
    """A cell; code is shown letter by letter, but for a backtick."""
    if column.unit != "code":
        return marked(shown(text, _WIDEST))
    inert = shown(text, _WIDEST).replace("`", "'").replace("|", "\\|").strip()
    return f"`{inert}`" if inert else ""
