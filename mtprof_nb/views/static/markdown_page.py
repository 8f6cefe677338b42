"""The overview, the key figures, the longest lines and the top ops as Markdown, to paste into an issue or a chat."""

from __future__ import annotations

from mtprof_nb.advice.causes.where_time_went import where_time_went
from mtprof_nb.tables.compilation_table import Compilations
from mtprof_nb.tables.rank_table import Ranks
from mtprof_nb.tables.table import Table
from mtprof_nb.tables.writers.as_markdown import as_markdown, marked
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.brief_tables import lines_table, operators_table
from mtprof_nb.views.static.overview import findings_markdown
from mtprof_nb.views.strip import strip_of

_MOST_LINES = 5


def markdown(scene: Scene) -> str:
    """The overview, and tables of ranks, lines and ops; `scene.limit` is the most ops."""
    strip = strip_of(scene.trace, scene.name, scene.status)
    figures = (strip.line, strip.shares if strip.phases else "") if len(scene.trace) else ()
    first, *others = [*filter(None, (where_time_went(scene.trace), *figures)), ""]
    headline = ": ".join(filter(None, (f"**{marked(strip.title)}**", marked(first))))
    notes = [marked(note) for note in strip.notes]
    findings = [paragraph for paragraph in findings_markdown(scene.trace) if paragraph not in notes]
    tables = [as_markdown(table) for table in _tables(scene) if table is not None]
    parts = (headline, *map(marked, others), *(f"> {note}" for note in notes), *findings, *tables)
    return "\n\n".join(filter(None, parts)) + "\n"


def _tables(scene: Scene) -> list[Table | None]:
    lines, ops = lines_table(scene, _MOST_LINES), operators_table(scene)
    return [
        Ranks(scene.trace).brief(),
        Compilations(scene.trace).brief(_MOST_LINES),
        lines and lines.only("where", "source", "time_ns", "share"),
        ops and ops.only("label", "count", "self_ns", "share", "total_ns"),
    ]
