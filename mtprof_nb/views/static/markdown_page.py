"""The key figures, the longest lines and the top ops as Markdown, to paste into an issue or a chat."""

from __future__ import annotations

import re

from mtprof_nb.analysis import units
from mtprof_nb.analysis.operators.operator_rows import rows
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.rank_table import rank_sentence
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.strip import strip_of
from mtprof_nb.views.tabs.ranks.ranks_html import rank_table

_LINES, _OPS = 5, 10
_LONGEST = 60
#: Characters that mean something in Markdown text.
_MEANING = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def markdown(scene: Scene) -> str:
    """A headline, and tables of lines and ops; `scene.limit` is the most ops."""
    strip = strip_of(scene.trace, scene.name, scene.status)
    parts = [f"**{_text(strip.title)}**: {_text(strip.line)}" if len(scene.trace) else f"**{_text(strip.title)}**"]
    if strip.phases:
        parts.append(_text(strip.shares))
    parts += [f"> {_text(note)}" for note in strip.notes]
    parts += [table for table in (_ranks(scene), _lines(scene), _ops(scene)) if table]
    return "\n\n".join(parts) + "\n"


def _ranks(scene: Scene) -> str:
    """The sentence about the straggler and a row for each rank, "" for one process."""
    titles, *body = rank_table(scene.trace) or [[]]
    if not body:
        return ""
    cells = [[_text(cell) for cell in row] for row in body]
    return f"{_text(rank_sentence(scene.trace))}\n\n{_table(titles, cells, texts=1)}"


def _lines(scene: Scene) -> str:
    """The longest lines, "" where none is known."""
    whole = program_ns(scene.trace)
    longest = [row for row in Lines(scene.trace).by_time() if row.file][:_LINES]
    body = [
        [
            _code(f"{row.where}:{row.line}"),
            _code(row.source.strip()),
            units.duration(row.time_ns),
            units.share(row.time_ns, whole),
        ]
        for row in longest
    ]
    return _table(["Line", "Source", "Time", "Share"], body, texts=2)


def _ops(scene: Scene) -> str:
    """The top ops, "" without events."""
    if not len(scene.trace):
        return ""
    grouped = rows(scene.trace, "op", scene.show_all)
    order = grouped.order(scene.sort)[: _OPS if scene.limit is None else max(scene.limit, 0)]
    whole = grouped.wholes["self_ns"]
    body = []
    for row in order.tolist():
        count, own, total = (int(grouped.value[key][row]) for key in ("count", "self_ns", "total_ns"))
        times = [units.duration(own), units.share(own, whole), units.duration(total)]
        body.append([_code(grouped.label[row]), units.number(count), *times])
    table = _table(["Op", "Calls", "Self", "Share", "Total"], body, texts=1)
    left_out = f"\n\nshowing {units.number(len(order))} of {units.plural(len(grouped), 'row')}"
    return table + (left_out if len(order) < len(grouped) else "")


def _table(titles: list[str], body: list[list[str]], texts: int) -> str:
    """A table whose first `texts` columns are on the left and the others on the right, "" without rows."""
    if not body:
        return ""
    rule = ["---"] * texts + ["---:"] * (len(titles) - texts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, rule, *body))


def _text(text: str) -> str:
    """Any text as Markdown that shows it."""
    return _MEANING.sub(r"\\\1", shown(text))


def _code(text: str) -> str:
    """Any text as code in a table, where it is shown letter by letter, but for a backtick; "" for no text."""
    inert = shown(text, _LONGEST).replace("`", "'").replace("|", "\\|").strip()
    return f"`{inert}`" if inert else ""
