"""A comparison as plain text and as Markdown."""

from __future__ import annotations

import re

from mtprof_nb.comparison.compared import Compared
from mtprof_nb.errors import legible_lines
from mtprof_nb.tables.text_table import aligned
from mtprof_nb.views.comparison.comparison_tables import explanation, headline, tables
from mtprof_nb.views.escaped_text import fitted

_NAME_WIDTH = 60
#: Characters with a meaning in a table of Markdown.
_MARKUP = re.compile(r"([\\`*_<>|\[\]])")


def text(compared: Compared, limit: int | None = None) -> str:
    """The headline, its reason and the tables as plain text."""
    parts = [headline(compared), *explanation(compared)]
    for table in tables(compared, limit):
        cells = [list(table.head), *([fitted(row[0], _NAME_WIDTH), *row[1:]] for row in table.rows)]
        last = len(table.head) - 1
        parts += ["", *(line.rstrip() for line in aligned(cells, texts=(0, last)))]
        parts += [table.folded] if table.folded else []
    return legible_lines("\n".join(parts))


def markdown(compared: Compared, limit: int | None = None) -> str:
    """The headline, its reason and the tables as Markdown."""
    parts = [f"**{_marked(headline(compared))}**", "", *(f"{_marked(line)}\n" for line in explanation(compared))]
    for table in tables(compared, limit):
        rule = [":--", *["--:"] * (len(table.head) - 2), ":--"]
        lines = [map(_marked, table.head), rule, *(map(_marked, row) for row in table.rows)]
        parts += [*(f"| {' | '.join(line)} |" for line in lines), ""]
        parts += [f"{table.folded}\n"] if table.folded else []
    return legible_lines("\n".join(parts)).rstrip() + "\n"


def _marked(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
