"""A comparison without scripts: as text, as Markdown, and as HTML with pictures and changed lines side by side."""

from __future__ import annotations

from typing import Any

from mtprof_nb.comparison.compared import Compared
from mtprof_nb.comparison.side_by_side import Version, Versions, side_by_side
from mtprof_nb.errors import legible_lines
from mtprof_nb.tables.table import Table, TableColumn
from mtprof_nb.tables.writers.as_html import as_html, escaped
from mtprof_nb.tables.writers.as_markdown import as_markdown, marked
from mtprof_nb.tables.writers.as_text import as_text
from mtprof_nb.views.comparison.comparison_pictures import A_COLOUR, B_COLOUR, pictures
from mtprof_nb.views.comparison.comparison_tables import explanation, headline, labels, tables

_PAGE = "font-size:13px;line-height:1.5"
_SWATCH = "display:inline-block;width:9px;height:9px;margin-right:6px"


def comparison_bundle(compared: Compared, limit: int | None = None) -> dict[str, str]:
    """The comparison as HTML, Markdown and text."""
    return {
        "text/html": html(compared, limit),
        "text/markdown": markdown(compared, limit),
        "text/plain": text(compared, limit),
    }


def text(compared: Compared, limit: int | None = None) -> str:
    """The headline, its reason and the tables as plain text."""
    shown_tables = (f"\n{as_text(table)}" for table in tables(compared, limit))
    return legible_lines("\n".join([headline(compared), *explanation(compared), *shown_tables]))


def markdown(compared: Compared, limit: int | None = None) -> str:
    """The headline, its reason and the tables as Markdown."""
    first = (f"**{marked(headline(compared))}**", *map(marked, explanation(compared)))
    return "\n\n".join([*first, *map(as_markdown, tables(compared, limit))]) + "\n"


def html(compared: Compared, limit: int | None = None) -> str:
    """The page, with at most `limit` rows of each kind."""
    parts = [
        f"<b>{escaped(headline(compared))}</b>",
        *(f"<div>{escaped(line)}</div>" for line in explanation(compared)),
        *map(as_html, tables(compared, limit)),
        _key(compared),
        *(f"<div style='margin-top:8px'><b>{escaped(title)}</b>{drawn}</div>" for title, drawn in pictures(compared)),
        *(as_html(_versions(file)) for file in side_by_side(compared.sides)),
    ]
    return f"<div style='{_PAGE}'>{''.join(parts)}</div>"


def _key(compared: Compared) -> str:
    """Which colour of the pictures is whose."""
    return " &nbsp; ".join(
        f"<span><span style='{_SWATCH};background:{colour}'></span>{escaped(name)}</span>"
        for colour, name in zip((A_COLOUR, B_COLOUR), labels(compared), strict=True)
    )


def _versions(file: Versions) -> Table:
    """Both versions of a file side by side."""
    columns = [
        column
        for side, title in (("a", file.a_title), ("b", file.b_title))
        for column in (
            TableColumn(f"{side}_number", "Line", "text"),
            TableColumn(f"{side}_ns", "Time", "time"),
            TableColumn(f"{side}_text", title, "code"),
        )
    ]
    rows = [
        ["", "", "…", "", "", "", ""] if row is None else [*_cells(row.a), *_cells(row.b), row.change]
        for row in file.rows
    ]
    return Table([*columns, TableColumn("change", "Change", "words")], rows)


def _cells(version: Version | None) -> list[Any]:
    """Number, time and text of a line, whose indentation HTML would leave out."""
    if version is None:
        return ["", "", ""]
    text = version.text.expandtabs(4)
    indented = "\u00a0" * (len(text) - len(text.lstrip())) + text.lstrip()
    return [str(version.number), "" if version.ns is None else version.ns, indented]
