"""A table as HTML that needs no script and no style sheet."""

from __future__ import annotations

import html
from typing import Any

from mtprof_nb.errors import LONGEST, LONGEST_SENTENCE, shown
from mtprof_nb.tables.table import MARK, TEXTS, Table, TableColumn, cell_text

#: Attributes of a table: frontends that sanitize HTML drop styles. A page without a doctype needs the inherited ones.
_TABLE = 'cellpadding="3" style="border-collapse:collapse;color:inherit;font-size:inherit;margin:6px 0"'
_WIDEST = 100


def escaped(name: str, longest: int = LONGEST) -> str:
    """`shown` for HTML and SVG, attributes included."""
    return html.escape(shown(name, longest), quote=True)


def as_html(table: Table) -> str:
    """The sentence, the rows under their titles, which have their meanings as tooltips, and the notes."""
    head = "".join(_title(column) for column in table.columns)
    body = "".join(f'<tr align="right">{"".join(map(_cell, table.columns, row))}</tr>' for row in table.rows)
    rows = f'<table {_TABLE}><thead><tr align="right">{head}</tr></thead><tbody>{body}</tbody></table>'
    return f"{_lines(table.sentence)}{rows if table.rows else ''}{_lines(*table.notes)}"


def coloured(text: str, colour: str) -> str:
    """A text in a colour, where styles are kept."""
    return f'<span style="color:{escaped(colour)}">{escaped(text)}</span>'


def _lines(*sentences: str) -> str:
    return "".join(f"<div>{escaped(sentence, LONGEST_SENTENCE)}</div>" for sentence in sentences if sentence)


def _align(column: TableColumn) -> str:
    return ' align="left"' if column.unit in (*TEXTS, MARK) else ""


def _title(column: TableColumn) -> str:
    meaning = f' title="{escaped(column.meaning)}"' if column.meaning else ""
    return f"<th{_align(column)}{meaning}>{escaped(column.title, _WIDEST)}</th>"


def _indented(text: str) -> str:
    """`text` with no-break spaces for those at its beginning, which HTML would not show."""
    return "\u00a0" * (len(text) - len(text.lstrip(" "))) + text.lstrip(" ")


def _cell(column: TableColumn, value: Any) -> str:
    if column.unit == MARK:
        return f'<td align="left">{coloured(*value)}</td>'
    text = cell_text(column, value)
    whole = f' title="{escaped(text)}"' if len(text) > _WIDEST else ""
    inner = escaped(_indented(text), _WIDEST)
    if inner and column.unit == "code":
        inner = f"<code>{inner}</code>"
    return f"<td nowrap{_align(column)}{whole}>{inner}</td>"
