"""The panel without scripts: HTML with tables and small pictures, and an aligned text table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.errors import legible_lines
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.compilation_table import Compilations
from mtprof_nb.tables.operators.operator_rows import rows
from mtprof_nb.tables.rank_table import Ranks
from mtprof_nb.tables.step_table import Steps
from mtprof_nb.tables.table import Table
from mtprof_nb.tables.writers.as_html import as_html, coloured, escaped
from mtprof_nb.tables.writers.as_text import as_text
from mtprof_nb.views.escaped_text import fitted, shown
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.brief_tables import DEFAULT_ROWS, lines_table, operators_table
from mtprof_nb.views.static.markdown_page import markdown
from mtprof_nb.views.static.overview import overview_html, overview_text
from mtprof_nb.views.static.svg import image, stacks_svg, timeline_svg
from mtprof_nb.views.strip import Strip, strip_of
from mtprof_nb.views.tabs.timeline.timeline_blocks import arranged
from mtprof_nb.views.tabs.timeline.timeline_tab import busy_by_thread

_TEXT_LINES = 8
_SPARKS = " ▁▂▃▄▅▆▇█"
_SPARK_BINS, _SPARK_TITLE = 80, 20
#: Pictures of more events take longer than somebody waits for a panel, whose tabs draw them when they are opened.
_MOST_EVENTS = 2_000_000


def bundle(scene: Scene, charts: bool = True) -> dict[str, str]:
    """The panel as a mime bundle of HTML, Markdown and text."""
    return {"text/html": html(scene, charts), "text/markdown": markdown(scene), "text/plain": text(scene)}


def text(scene: Scene) -> str:
    """The key figures, the longest lines and the top rows as plain text."""
    return legible_lines("\n".join(_text_lines(scene)))


def _text_lines(scene: Scene) -> list[str]:
    strip = strip_of(scene.trace, scene.name, scene.status)
    lines = [shown(strip.title), *filter(None, [strip.sentence]), *map(shown, strip.notes)]
    if not len(scene.trace):
        table = lines_table(scene, _TEXT_LINES)
        return lines if table is None else [*lines, "", as_text(table)]
    lines.append(strip.line)
    if strip.phases:
        lines.append(strip.shares)
    lines += [shown(bar.line) for bar in strip.devices]
    lines += overview_text(scene.trace)
    if steps := _steps(scene.trace):
        lines += ["", *steps]
    first = (Ranks(scene.trace).brief(), Compilations(scene.trace).brief(_TEXT_LINES))
    tables = (*first, lines_table(scene, _TEXT_LINES), operators_table(scene))
    return lines + [part for table in tables if table is not None for part in ("", as_text(table))]


def _steps(trace: Trace) -> list[str]:
    """A line about all steps and one for each slow step; empty without marked steps, and for several processes."""
    steps = Steps(trace)
    return list(map(shown, repr(steps).splitlines())) if len(steps) else []


def html(scene: Scene, charts: bool = True) -> str:
    """The key figures, the top rows, and small pictures of timeline and stacks, as HTML that needs no script."""
    trace, show_all = scene.trace, scene.show_all
    parts = [_strip_html(strip_of(trace, scene.name, scene.status))]
    if charts:
        parts.append(overview_html(trace))
        parts.append(_titled("Steps", "".join(f"<div>{escaped(line)}</div>" for line in _steps(trace))))
        parts.append(_titled("Ranks", _table(Ranks(trace).brief())))
        parts.append(_titled("Compilations", _table(Compilations(trace).brief(DEFAULT_ROWS))))
        parts.append(_titled("Lines by time", _table(lines_table(replace(scene, limit=None), DEFAULT_ROWS))))
    parts.append(_table(operators_table(scene)))
    if charts and 0 < len(trace) <= _MOST_EVENTS:
        parts += [
            _titled("Timeline", image(timeline_svg(trace, show_all), "Timeline") + _sparks(trace)),
            image(stacks_svg(trace, show_all), "Stacks"),
            _legend_html(trace, show_all),
        ]
    return f'<div style="font-size:13px;line-height:1.5">{"".join(parts)}</div>'


def _table(table: Table | None) -> str:
    return "" if table is None else as_html(table)


def _strip_html(strip: Strip) -> str:
    figures = " &nbsp; ".join(
        f'<span title="{escaped(figure.meaning)}"><span style="opacity:0.65">{escaped(figure.title)}</span> '
        f"<b>{escaped(figure.text)}</b></span>"
        for figure in strip.figures
    )
    notes = "".join(f"<div><b>{escaped(note)}</b></div>" for note in strip.notes)
    shares = f'<div style="opacity:0.8">{escaped(strip.shares)}</div>' if strip.phases else ""
    sentence = f"<div>{escaped(strip.sentence)}</div>" if strip.sentence else ""
    devices = "".join(f'<div style="opacity:0.8">{escaped(bar.line)}</div>' for bar in strip.devices)
    return f"<div><b>{escaped(strip.title)}</b></div>{sentence}{notes}<div>{figures}</div>{shares}{devices}"


def _sparks(trace: Trace) -> str:
    """How busy each thread was over time, as characters: shown where a frontend drops the pictures and the style."""
    busy = busy_by_thread(trace, *arranged(trace, False).whole_ns, _SPARK_BINS)
    titles = [fitted(shown(trace.track_title(thread)), _SPARK_TITLE) for thread in busy]
    width = max(map(len, titles), default=0)
    lines = [
        f"{title.ljust(width)} {''.join(_SPARKS[round(share * 8)] for share in shares.tolist())}"
        for title, shares in zip(titles, busy.values(), strict=True)
    ]
    text = "\n".join(map(escaped, lines))
    return f'<pre style="display:none">{text}</pre>' if lines else ""


def _titled(title: str, picture: str) -> str:
    return f'<div style="margin-top:8px"><b>{title}</b>{picture}</div>' if picture else ""


def _legend_html(trace: Trace, show_all: bool) -> str:
    codes = np.unique(rows(trace, "op", show_all).family).tolist()
    entries = " &nbsp; ".join(f"{coloured('■', FAMILIES[code].colour)} {FAMILIES[code].title}" for code in codes)
    return f'<div style="opacity:0.8;margin-top:4px">{entries}</div>'
