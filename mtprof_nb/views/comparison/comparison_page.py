"""A comparison as plain text, as Markdown and as HTML without scripts."""

from __future__ import annotations

import re

from mtprof_nb.comparison.findings import Findings
from mtprof_nb.results.text_table import aligned
from mtprof_nb.views.comparison.comparison_tables import Table, explanation, headline, tables
from mtprof_nb.views.escaped_text import escaped, fitted

_NAME_WIDTH = 60
_TABLE = "color:inherit;font-size:inherit;border-collapse:collapse;margin:6px 0;text-align:right;white-space:nowrap"
_CELL = "padding:1px 7px;white-space:nowrap"
_NAME = f"{_CELL};text-align:left;max-width:32em;overflow:hidden;text-overflow:ellipsis"
#: Characters with a meaning in a table of Markdown.
_MARKUP = re.compile(r"([\\`*_<>|\[\]])")


def text(findings: Findings, limit: int | None = None) -> str:
    """The headline, its reason and the tables as plain text."""
    parts = [headline(findings), *explanation(findings)]
    for table in tables(findings, limit):
        cells = [list(table.head), *([fitted(row[0], _NAME_WIDTH), *row[1:]] for row in table.rows)]
        last = len(table.head) - 1
        parts += ["", *(line.rstrip() for line in aligned(cells, texts=(0, last)))]
        parts += [table.folded] if table.folded else []
    return "\n".join(parts)


def markdown(findings: Findings, limit: int | None = None) -> str:
    """The headline, its reason and the tables as Markdown."""
    parts = [f"**{_marked(headline(findings))}**", "", *(f"{_marked(line)}\n" for line in explanation(findings))]
    for table in tables(findings, limit):
        rule = [":--", *["--:"] * (len(table.head) - 2), ":--"]
        lines = [map(_marked, table.head), rule, *(map(_marked, row) for row in table.rows)]
        parts += [*(f"| {' | '.join(line)} |" for line in lines), ""]
        parts += [f"{table.folded}\n"] if table.folded else []
    return "\n".join(parts).rstrip() + "\n"


def html(findings: Findings, limit: int | None = None) -> str:
    """The headline, its reason and the tables as HTML."""
    reasons = "".join(f"<div>{escaped(line)}</div>" for line in explanation(findings))
    body = "".join(_html_table(table) for table in tables(findings, limit))
    return f"<div class='mtprof-comparison'><b>{escaped(headline(findings))}</b>{reasons}{body}</div>"


def _marked(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def _html_table(table: Table) -> str:
    head = "".join(f"<th style='{_style(at, table)}'>{escaped(title)}</th>" for at, title in enumerate(table.head))
    rows = "".join(f"<tr>{_html_cells(row, table)}</tr>" for row in table.rows)
    folded = f"<div>{escaped(table.folded)}</div>" if table.folded else ""
    return f"<table style='{_TABLE}'><tr>{head}</tr>{rows}</table>{folded}"


def _html_cells(row: tuple[str, ...], table: Table) -> str:
    return "".join(
        f"<td style='{_style(at, table)}' title='{escaped(cell)}'>{escaped(cell)}</td>" for at, cell in enumerate(row)
    )


def _style(column: int, table: Table) -> str:
    return _NAME if column in (0, len(table.head) - 1) else _CELL
