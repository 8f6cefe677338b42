"""The panel without scripts: HTML with tables and small pictures, and an aligned text table."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.families import FAMILIES, Family
from mtprof_nb.analysis.operators.operator_rows import rows, showing
from mtprof_nb.analysis.operators.operator_table import OperatorRows, TableColumn
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.errors import legible_lines
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.text_table import aligned
from mtprof_nb.views.escaped_text import escaped, fitted, shown
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.markdown_page import markdown
from mtprof_nb.views.static.svg import image, stacks_svg, timeline_svg
from mtprof_nb.views.strip import Strip, strip_of
from mtprof_nb.views.tabs.lines.lines_html import TABLE, lines_html
from mtprof_nb.views.tabs.lines.lines_tab import line_cells, line_titles, phases_of
from mtprof_nb.views.tabs.ranks.ranks_html import rank_table, ranks_html, ranks_left_out
from mtprof_nb.views.tabs.steps.steps_html import steps_html, steps_text
from mtprof_nb.views.tabs.summary.summary_tab import summary_html, summary_text
from mtprof_nb.views.tabs.timeline.timeline_blocks import arranged
from mtprof_nb.views.tabs.timeline.timeline_tab import busy_by_thread

DEFAULT_ROWS = 10
_TEXT_LINES = 8
_NAME_WIDTH = 44
_BAR_CHARACTERS = 24
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
        return lines + _lines_text(scene)
    grouped, order = _top(scene)
    lines.append(strip.line)
    if strip.phases:
        lines.append(strip.shares)
    lines += [shown(bar.line) for bar in strip.devices]
    lines += summary_text(scene.trace)
    lines += steps_text(scene.trace)
    lines += _ranks_text(scene.trace)
    lines += _lines_text(scene)
    body = [[fitted(shown(grouped.label[row]), _NAME_WIDTH), *_cells(grouped, row)] for row in order.tolist()]
    table = _aligned([["Name", *(column.title for column in grouped.columns)], *body])
    return [*lines, "", *table, "", _showing(grouped, order)]


def _ranks_text(trace: Trace) -> list[str]:
    """A row for each rank as an aligned table, empty for one process."""
    table = rank_table(trace)
    if not table:
        return []
    note = ranks_left_out(trace)
    return ["", *(line.rstrip() for line in _aligned(table, texts=(0, len(table[0]) - 1))), *([note] if note else [])]


def _lines_text(scene: Scene) -> list[str]:
    """The longest lines as an aligned table, empty where no line is known."""
    listed = Lines(scene.trace)
    if not any(row.file for row in listed):
        return []
    most = _TEXT_LINES if scene.limit is None else max(min(scene.limit, _TEXT_LINES), 0)
    whole, spent = program_ns(scene.trace), phases_of(listed)
    phases = spent if len(spent) > 1 else []
    titles = ["Line", *line_titles(scene.trace, phases), "Source"]
    body = [
        [
            shown(f"{row.where}:{row.line}" if row.file else row.source, _NAME_WIDTH),
            *line_cells(row, whole, phases),
            fitted(shown(row.source), _NAME_WIDTH) if row.file else "",
        ]
        for row in listed.by_time()[:most]
    ]
    table = _aligned([titles, *body], texts=(0, len(titles) - 1))
    count = units.plural(len(listed), "line")
    note = [f"Note: {shown(listed.note)}"] if listed.note else []
    return ["", *(line.rstrip() for line in table), "", f"showing {units.number(len(body))} of {count}", *note]


def html(scene: Scene, charts: bool = True) -> str:
    """The key figures, the top rows, and small pictures of timeline and stacks, as HTML that needs no script."""
    trace, show_all = scene.trace, scene.show_all
    parts = [_strip_html(strip_of(trace, scene.name, scene.status))]
    if charts:
        parts.append(summary_html(trace))
        parts.append(_titled("Steps", steps_html(trace)))
        parts.append(_titled("Ranks", ranks_html(trace)))
        parts.append(_titled("Lines by time", lines_html(trace)))
    if len(trace):
        parts.append(_table_html(*_top(scene)))
    if charts and 0 < len(trace) <= _MOST_EVENTS:
        parts += [
            _titled("Timeline", image(timeline_svg(trace, show_all), "Timeline") + _sparks(trace)),
            image(stacks_svg(trace, show_all), "Stacks"),
            _legend_html(trace, show_all),
        ]
    return f'<div style="font-size:13px;line-height:1.5">{"".join(parts)}</div>'


def _top(scene: Scene) -> tuple[OperatorRows, Int64]:
    grouped = showing(rows(scene.trace, "op", scene.show_all), scene.sort)
    order = grouped.order(scene.sort)
    return grouped, order[: DEFAULT_ROWS if scene.limit is None else max(scene.limit, 0)]


def _cells(grouped: OperatorRows, row: int) -> list[str]:
    return [_cell(grouped, column, row) for column in grouped.columns]


def _cell(grouped: OperatorRows, column: TableColumn, row: int) -> str:
    if column.of:
        return units.share(*grouped.share(column, row))
    value = int(grouped.value[column.key][row])
    if column.unit == "flops" and not value:
        return "–"
    return units.WRITERS[column.unit](value)


def _showing(grouped: OperatorRows, order: Int64) -> str:
    return f"showing {units.number(len(order))} of {units.plural(len(grouped), 'row')}"


def _aligned(table: list[list[str]], texts: tuple[int, ...] = (0,)) -> list[str]:
    """Lines of a table under its header: the columns `texts` on the left, numbers on the right."""
    header, *lines = aligned(table, texts)
    return [header, "-" * len(header), *lines]


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


def _table_html(grouped: OperatorRows, order: Int64) -> str:
    head = "".join(f'<th title="{escaped(column.meaning)}">{column.title}</th>' for column in grouped.columns)
    body = "".join(_row_html(grouped, row) for row in order.tolist())
    return (
        f'<table {TABLE}><thead><tr align="right"><th align="left">Name</th>{head}<th></th></tr></thead>'
        f"<tbody>{body}</tbody></table><div>{_showing(grouped, order)}</div>"
    )


def _row_html(grouped: OperatorRows, row: int) -> str:
    family, label = FAMILIES[grouped.family[row]], grouped.label[row]
    shared = next(
        (grouped.value[column.of] for column in grouped.columns if column.of), np.ones(len(grouped), np.int64)
    )
    name = f'<td align="left" nowrap>{coloured("■", family)} {escaped(label, 60)}</td>'
    cells = "".join(f"<td nowrap>{escaped(cell)}</td>" for cell in _cells(grouped, row))
    bar = coloured(text_bar(int(shared[row]) / max(int(shared.max()), 1)), family)
    return f'<tr align="right">{name}{cells}<td align="left">{bar}</td></tr>'


def coloured(text: str, family: Family) -> str:
    """A text in the colour of a family, where styles are kept."""
    return f'<span style="color:{family.colour}">{text}</span>'


def text_bar(share: float) -> str:
    """A share as a bar of characters, which every frontend keeps."""
    eighths = round(share * _BAR_CHARACTERS * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


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
    entries = " &nbsp; ".join(f"{coloured('■', FAMILIES[code])} {FAMILIES[code].title}" for code in codes)
    return f'<div style="opacity:0.8;margin-top:4px">{entries}</div>'
