"""Timeline and stacks as small SVG pictures, and as images for HTML."""

from __future__ import annotations

import itertools
import re
from base64 import b64encode
from collections import defaultdict

from mtprof_nb.analysis import units
from mtprof_nb.analysis.families import FAMILIES, Family
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.charts.stack_charts import FILLS, Slices, slices, stack_chart
from mtprof_nb.views.charts.timeline_blocks import ROW_PIXELS, arranged
from mtprof_nb.views.escaped_text import escaped, fitted, short_name, shown

WIDTH = 860
_GUTTER = 96
_MOST_BLOCKS, _MOST_SLICES, _MOST_LEVELS = 300, 70, 12
_MOST_HEIGHT = 420
_CHARACTER = 6.2
_EDGE = 24
#: An image has no theme: this colour is readable on light and dark.
_INK = "#7b838b"
_TITLE = re.compile("<title>[^<]*</title>")
_LABEL = 'font-family="ui-sans-serif,system-ui,sans-serif" font-size="10.5"'


def timeline_svg(trace: Trace, show_all: bool = False) -> str:
    """The timeline of the whole trace, "" without events."""
    if not len(trace):
        return ""
    chart = arranged(trace, show_all)
    begin, end = chart.whole_ns
    room = WIDTH - _GUTTER
    blocks = chart.levels.window(begin, end, limit=_MOST_BLOCKS, pixels=room)
    family = chart.levels.parts(blocks, chart.family, len(FAMILIES)).dominant(len(blocks)).tolist()
    scale = room / (end - begin)
    parts = []
    rows = zip(
        chart.row_y(blocks.row), blocks.start_ns.tolist(), blocks.end_ns.tolist(), blocks.event.tolist(), strict=True
    )
    for index, (y, start, stop, event) in enumerate(rows):
        name = trace.names[trace.name[event]]
        count, time_ns = int(blocks.count[index]), int(blocks.time_ns[index])
        merged = count > 1
        label = f"{units.plural(count, 'event')}, mostly {FAMILIES[family[index]].title}" if merged else name
        # An area is a time: the height of a block of many events is its busy share.
        busy = min(time_ns / max(stop - start, 1), 1.0) if merged else 1.0
        box = (_GUTTER + (start - begin) * scale, y + 0.44 - 0.88 * busy, (stop - start) * scale, 0.88 * busy)
        parts.append(
            _block(
                box, FAMILIES[family[index]], "" if merged else short_name(name), f"{label}: {units.duration(time_ns)}"
            )
        )
    titles = [_lane_title(lane.title, top) for lane, top in zip(chart.lanes.lanes, chart.lane_tops, strict=True)]
    height = min(chart.height * ROW_PIXELS, _MOST_HEIGHT)
    axis = _axis(end - begin, room, height)
    return _svg([*titles, *parts, axis], height + 20, f"Timeline of {units.duration(end - begin)}")


def stacks_svg(trace: Trace, show_all: bool = False) -> str:
    """The stacks by self time as an icicle, "" without events."""
    if not len(trace):
        return ""
    chart = stack_chart(trace, show_all)
    total = chart.tree.with_callees(chart.own("self"))
    if not total[0]:
        return ""
    cut = slices(chart.tree, total, _MOST_SLICES)
    parts, deepest = [], 0
    for slice_, level, left, width in _icicle(cut):
        if level >= _MOST_LEVELS:
            continue
        node, amount = int(cut.node[slice_]), units.duration(int(cut.total[slice_]))
        label = chart.label(node, int(cut.folded[slice_]))
        box = (left * WIDTH, level + 0.06, width * WIDTH, 0.88)
        parts.append(_block(box, FILLS[chart.fill_of(node)], label, f"{chart.full_name(node)}: {amount}"))
        deepest = max(deepest, level)
    return _svg(parts, (deepest + 1) * ROW_PIXELS, "Stacks by self time")


def _icicle(cut: Slices) -> list[tuple[int, int, float, float]]:
    """(slice, level, left, width) of each slice: callees side by side under their caller, the largest first."""
    callees: defaultdict[int, list[int]] = defaultdict(list)
    for slice_, parent in enumerate(cut.parent.tolist()):
        callees[parent].append(slice_)
    whole = float(cut.total[0])
    laid_out, waiting = [], [(0, 0, 0.0)]
    while waiting:
        slice_, level, left = waiting.pop()
        laid_out.append((slice_, level, left, float(cut.total[slice_]) / whole))
        for callee in sorted(callees[slice_], key=lambda slice_: (-cut.total[slice_], slice_)):
            waiting.append((callee, level + 1, left))
            left += float(cut.total[callee]) / whole
    return laid_out


def _block(box: tuple[float, float, float, float], family: Family, label: str, title: str) -> str:
    """One block: x and width in pixels, y and height in rows."""
    x, row, width, rows = box
    y, height = row * ROW_PIXELS, rows * ROW_PIXELS
    text = fitted(shown(label), int((width - 6) / _CHARACTER))
    attributes = f'x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}"'
    block = f'<rect {attributes} fill="{family.colour}"><title>{escaped(title)}</title></rect>'
    if not text:
        return block
    middle = f'x="{x + width / 2:.4g}" y="{y + height / 2 + 3.6:.4g}"'
    return f'{block}<text {middle} text-anchor="middle" fill="{family.ink}">{escaped(text)}</text>'


def _lane_title(title: str, top: float) -> str:
    short = fitted(shown(title), int(_GUTTER / _CHARACTER) - 1)
    text = f'<text x="0" y="{(top + 0.5) * ROW_PIXELS + 4:.1f}" fill="{_INK}">{escaped(short)}</text>'
    return f"<g><title>{escaped(title)}</title>{text}</g>"


def _axis(length_ns: int, room: float, height: float) -> str:
    marks = []
    for at_ns in round_ticks(length_ns):
        x = _GUTTER + room * at_ns / length_ns
        # A label in the middle of a mark at the edge would be cut.
        anchor = "start" if at_ns == 0 else "end" if WIDTH - x < _EDGE else "middle"
        text = units.duration(at_ns)
        marks.append(f'<text x="{x:.1f}" y="{height + 15:.1f}" fill="{_INK}" text-anchor="{anchor}">{text}</text>')
    return f'<g opacity="0.75">{"".join(marks)}</g>'


def round_ticks(length_ns: int) -> list[int]:
    """Round moments from 0 to `length_ns`, at most six."""
    step = next(
        factor * 10**power for power in itertools.count() for factor in (1, 2, 5) if factor * 10**power * 5 >= length_ns
    )
    return list(range(0, length_ns + 1, step))


def _svg(parts: list[str], height: float, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="{escaped(title)}" {_LABEL}>{"".join(parts)}</svg>'
    )


def image(svg: str, title: str) -> str:
    """`svg` as an image for HTML, "" for none.

    Inline SVG would not do: frontends that sanitize HTML drop its tags and keep its texts.
    """
    if not svg:
        return ""
    # An image has no hover texts.
    encoded = b64encode(_TITLE.sub("", svg).encode()).decode()
    looks = f"width:100%;max-width:{WIDTH}px;display:block"
    return f'<img alt="{escaped(title)}" style="{looks}" src="data:image/svg+xml;base64,{encoded}">'
