"""The ranks of a recording as a table that needs no script, as text and as Markdown."""

from __future__ import annotations

from mtprof_nb.analysis import units
from mtprof_nb.analysis.ranks.rank_figures import RankFigures, rank_figures
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.rank_table import rank_sentence
from mtprof_nb.views.escaped_text import escaped, shown
from mtprof_nb.views.tabs.lines.lines_html import TABLE

_TITLES = ("Rank", "Wall", "Computing", "Communicating", "Waiting", "Outside", "Last", "Peak memory", "Hottest line")
#: Beyond this number, the ranks that the others waited for longest are shown.
_MOST_RANKS = 16


def rank_table(trace: Trace) -> list[list[str]]:
    """Titles and rows as texts; empty for one process."""
    if len(trace.processes) < 2:
        return []
    rows = rank_figures(trace)
    if len(rows) > _MOST_RANKS:
        rows = tuple(sorted(rows, key=lambda row: -row.waited_for_ns)[:_MOST_RANKS])
    return [list(_TITLES), *map(_cells, rows)]


def _cells(row: RankFigures) -> list[str]:
    parts = (row.computing_ns, row.communicating_ns, row.waiting_ns, row.outside_ns)
    return [
        shown(row.title),
        units.duration(row.wall_ns),
        *(f"{units.duration(ns)} ({units.share(ns, row.program_ns)})" for ns in parts),
        f"{row.came_last} of {row.collectives}",
        "–" if row.peak_bytes is None else units.nbytes(row.peak_bytes),
        shown(row.hottest_line) or "–",
    ]


def ranks_left_out(trace: Trace) -> str:
    """How many ranks the table leaves out, "" for none."""
    left = len(trace.processes) - _MOST_RANKS
    return f"showing the {_MOST_RANKS} ranks that others waited for longest; {left:,} more" if left > 0 else ""


def ranks_html(trace: Trace) -> str:
    """The sentence about the straggler, and a row for each rank; "" for one process."""
    table = rank_table(trace)
    if not table:
        return ""
    head, *body = (f"<tr{_ALIGN}>{''.join(_cell(*pair) for pair in enumerate(cells))}</tr>" for cells in table)
    note = ranks_left_out(trace)
    return (
        f"<div>{escaped(rank_sentence(trace))}</div><table {TABLE}><thead>{head}</thead><tbody>{''.join(body)}</tbody>"
        f"</table>{f'<div>{note}</div>' if note else ''}"
    )


_ALIGN = ' align="right"'


def _cell(column: int, text: str) -> str:
    align = ' align="left"' if column in (0, len(_TITLES) - 1) else ""
    return f"<td nowrap{align}>{escaped(text)}</td>"
