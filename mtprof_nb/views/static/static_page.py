"""The panel without scripts: HTML with tables and small pictures, and an aligned text table."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.operator_rows import rows, showing
from mtprof_nb.analysis.operator_table import Column, OperatorRows
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.results.line_table import Lines
from mtprof_nb.results.text_table import aligned
from mtprof_nb.views.escaped_text import escaped, fitted, shown
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.svg import image, stacks_svg, timeline_svg
from mtprof_nb.views.strip import Strip, strip_of
from mtprof_nb.views.tables.lines_tab import line_cells, line_titles, lines_html, phases_of
from mtprof_nb.views.tables.summary_tab import summary_html, summary_text

DEFAULT_ROWS = 10
_TEXT_LINES = 8
_NAME_WIDTH = 44
#: In a page without a doctype, tables do not inherit colour and size.
_TABLE = "color:inherit;font-size:inherit;border-collapse:collapse;margin:6px 0;text-align:right;white-space:nowrap"
_CELL = "padding:1px 7px;white-space:nowrap"
_NAME = f"{_CELL};text-align:left;max-width:26em;overflow:hidden;text-overflow:ellipsis"


def text(scene: Scene) -> str:
    """The key figures, the longest lines and the top rows as plain text."""
    strip = strip_of(scene.trace, scene.name, scene.status)
    lines = [shown(strip.title), *filter(None, [strip.sentence]), *map(shown, strip.notes)]
    if not len(scene.trace):
        return "\n".join(lines + _lines_text(scene))
    grouped, order = _top(scene)
    lines.append(strip.line)
    if strip.phases:
        lines.append(", ".join(f"{share.phase} {share.text}" for share in strip.phases))
    lines += [shown(bar.line) for bar in strip.devices]
    lines += summary_text(scene.trace)
    lines += _lines_text(scene)
    body = [[fitted(shown(grouped.label[row]), _NAME_WIDTH), *_cells(grouped, row)] for row in order.tolist()]
    return "\n".join(
        [
            *lines,
            "",
            *_aligned([["Name", *(column.title for column in grouped.columns)], *body]),
            "",
            _showing(grouped, order),
        ]
    )


def _lines_text(scene: Scene) -> list[str]:
    """The longest lines as an aligned table, empty where no line is known."""
    listed = Lines(scene.trace)
    if not any(row.file for row in listed):
        return []
    most = _TEXT_LINES if scene.limit is None else max(min(scene.limit, _TEXT_LINES), 0)
    whole, spent = sum(row.time_ns for row in listed), phases_of(listed)
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
        parts.append(_titled("Lines by time", lines_html(trace)))
    if len(trace):
        parts.append(_table_html(*_top(scene)))
    if charts and len(trace):
        parts += [
            _titled("Timeline", image(timeline_svg(trace, show_all), "Timeline")),
            _titled("Stacks by self time", image(stacks_svg(trace, show_all), "Stacks by self time")),
            _legend_html(trace, show_all),
        ]
    return f'<div style="font-size:13px;line-height:1.5">{"".join(parts)}</div>'


def _top(scene: Scene) -> tuple[OperatorRows, Int64]:
    grouped = showing(rows(scene.trace, "op", scene.show_all), scene.sort)
    order = grouped.order(scene.sort)
    return grouped, order[: DEFAULT_ROWS if scene.limit is None else max(scene.limit, 0)]


def _cells(grouped: OperatorRows, row: int) -> list[str]:
    return [_cell(grouped, column, row) for column in grouped.columns]


def _cell(grouped: OperatorRows, column: Column, row: int) -> str:
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
    phases = ", ".join(f"{escaped(share.phase)} {escaped(share.text)}" for share in strip.phases)
    notes = "".join(f"<div><b>{escaped(note)}</b></div>" for note in strip.notes)
    shares = f'<div style="opacity:0.8">{phases}</div>' if phases else ""
    sentence = f"<div>{escaped(strip.sentence)}</div>" if strip.sentence else ""
    devices = "".join(f'<div style="opacity:0.8">{escaped(bar.line)}</div>' for bar in strip.devices)
    return f"<div><b>{escaped(strip.title)}</b></div>{sentence}{notes}<div>{figures}</div>{shares}{devices}"


def _table_html(grouped: OperatorRows, order: Int64) -> str:
    head = "".join(
        f'<th style="{_CELL};text-align:right" title="{escaped(column.meaning)}">{column.title}</th>'
        for column in grouped.columns
    )
    body = "".join(_row_html(grouped, row) for row in order.tolist())
    return (
        f'<table style="{_TABLE}"><thead><tr><th style="{_NAME}">Name</th>{head}</tr></thead>'
        f'<tbody style="font-variant-numeric:tabular-nums">{body}</tbody></table>'
        f'<div style="opacity:0.65">{_showing(grouped, order)}</div>'
    )


def _row_html(grouped: OperatorRows, row: int) -> str:
    family = FAMILIES[grouped.family[row]]
    swatch = (
        f'<span style="display:inline-block;width:9px;height:9px;margin-right:6px;background:{family.colour}"></span>'
    )
    label = grouped.label[row]
    name = f'<td style="{_NAME}" title="{escaped(label)}">{swatch}{escaped(label, 60)}</td>'
    styles = [f"{_CELL};{_heat(grouped, column, row)}" if column.of else _CELL for column in grouped.columns]
    cells = "".join(
        f'<td style="{style}">{escaped(cell)}</td>' for style, cell in zip(styles, _cells(grouped, row), strict=True)
    )
    return f"<tr>{name}{cells}</tr>"


def _heat(grouped: OperatorRows, column: Column, row: int) -> str:
    """A background that is as wide as a share."""
    part, whole = grouped.share(column, row)
    percent = 100 * part / max(whole, 1)
    colour = FAMILIES[grouped.family[row]].colour
    return f"background:linear-gradient(90deg,{colour}59 {percent:.1f}%,transparent {percent:.1f}%)"


def _titled(title: str, picture: str) -> str:
    return f'<div style="margin-top:8px"><b>{title}</b>{picture}</div>' if picture else ""


def _legend_html(trace: Trace, show_all: bool) -> str:
    codes = np.unique(rows(trace, "op", show_all).family).tolist()
    entries = " &nbsp; ".join(
        f'<span><span style="display:inline-block;width:9px;height:9px;background:{FAMILIES[code].colour}"></span> '
        f"{FAMILIES[code].title}</span>"
        for code in codes
    )
    return f'<div style="opacity:0.8;margin-top:4px">{entries}</div>'
