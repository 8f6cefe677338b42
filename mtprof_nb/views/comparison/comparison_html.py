"""A comparison without scripts: as text, as Markdown, and as HTML with pictures and changed lines side by side."""

from __future__ import annotations

from mtprof_nb.analysis import units
from mtprof_nb.comparison.compared import Compared
from mtprof_nb.comparison.joined_rows import EDITED, GONE, NEW
from mtprof_nb.comparison.side_by_side import Row, Version, Versions, side_by_side
from mtprof_nb.errors import legible_lines
from mtprof_nb.tables.writers.as_html import as_html, escaped
from mtprof_nb.tables.writers.as_markdown import as_markdown, marked
from mtprof_nb.tables.writers.as_text import as_text
from mtprof_nb.views.comparison.comparison_pictures import A_COLOUR, B_COLOUR, pictures
from mtprof_nb.views.comparison.comparison_tables import explanation, headline, labels, tables

_PAGE = "font-size:13px;line-height:1.5"
_TABLE = "color:inherit;font-size:inherit;border-collapse:collapse;margin:6px 0;text-align:right;white-space:nowrap"
_CELL = "padding:1px 7px;white-space:nowrap"
_NAME = f"{_CELL};text-align:left;max-width:32em;overflow:hidden;text-overflow:ellipsis"
_SWATCH = "display:inline-block;width:9px;height:9px;margin-right:6px"
_TINTS = {NEW: "#1f77d026", GONE: "#f2a02c26", EDITED: "#8a919926"}


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
        *(_versions(file) for file in side_by_side(compared.sides)),
    ]
    return f"<div style='{_PAGE}'>{''.join(parts)}</div>"


def _key(compared: Compared) -> str:
    """Which colour of the pictures is whose."""
    return " &nbsp; ".join(
        f"<span><span style='{_SWATCH};background:{colour}'></span>{escaped(name)}</span>"
        for colour, name in zip((A_COLOUR, B_COLOUR), labels(compared), strict=True)
    )


def _versions(file: Versions) -> str:
    """Both versions of a file side by side."""
    head = "".join(f"<th style='{_NAME}' colspan='3'>{escaped(title)}</th>" for title in (file.a_title, file.b_title))
    rows = "".join(_version_row(row) for row in file.rows)
    return f"<table style='{_TABLE}'><tr>{head}</tr>{rows}</table>"


def _version_row(row: Row | None) -> str:
    if row is None:
        return f"<tr><td style='{_NAME}' colspan='6'>…</td></tr>"
    tint = f";background:{_TINTS[row.change]}" if row.change else ""
    return f"<tr>{_version_cells(row.a, tint)}{_version_cells(row.b, tint)}</tr>"


def _version_cells(version: Version | None, tint: str) -> str:
    if version is None:
        return "<td colspan='3'></td>"
    time = "" if version.ns is None else units.duration(version.ns)
    code = f"<code style='white-space:pre'>{escaped(version.text.expandtabs(4), 160)}</code>"
    numbers = "".join(f"<td style='{_CELL}{tint}'>{text}</td>" for text in (version.number, time))
    return f"{numbers}<td style='{_NAME}{tint}'>{code}</td>"
