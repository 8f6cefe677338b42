"""The longest source lines as an HTML table that needs no script."""

from __future__ import annotations

from collections.abc import Sequence

from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.line_table import LineRow, Lines
from mtprof_nb.views.escaped_text import escaped
from mtprof_nb.views.tabs.lines.lines_tab import line_cells, line_titles, phases_of

#: Attributes of a table: frontends that sanitize HTML drop styles. A page without a doctype needs the inherited ones.
TABLE = 'cellpadding="3" style="border-collapse:collapse;color:inherit;font-size:inherit;margin:6px 0"'
_MOST_ROWS = 10


def lines_html(trace: Trace) -> str:
    """The longest lines as a table that needs no script; "" where no line is known."""
    lines = Lines(trace)
    if not any(row.file for row in lines):
        return ""
    whole, phases = program_ns(trace), phases_of(lines)
    head = "".join(f"<th>{title}</th>" for title in line_titles(trace, phases))
    body = "".join(_row_html(row, whole, phases) for row in lines.by_time()[:_MOST_ROWS])
    note = f"<div>{escaped(lines.note)}</div>" if lines.note else ""
    count = units.plural(len(lines), "line")
    return (
        f'<table {TABLE}><thead><tr align="right"><th align="left">Line</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{note}"
        f"<div>showing {units.number(min(len(lines), _MOST_ROWS))} of {count}</div>"
    )


def _row_html(row: LineRow, whole_ns: int, phases: Sequence[int]) -> str:
    where = f"{row.where}:{row.line} " if row.file else ""
    numbers = "".join(f"<td nowrap>{escaped(cell)}</td>" for cell in line_cells(row, whole_ns, phases))
    code = f"<code>{escaped(row.source, 80)}</code>" if row.source else ""
    return f'<tr align="right"><td align="left">{escaped(where)}{code}</td>{numbers}</tr>'
