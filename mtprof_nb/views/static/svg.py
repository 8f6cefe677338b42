"""Timeline and stacks as small SVG pictures, and as images for HTML."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.families import FAMILIES, Family
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.writers.as_html import escaped
from mtprof_nb.views.escaped_text import fitted, short_name, shown
from mtprof_nb.views.tabs.stacks.stack_slices import Slices, slices
from mtprof_nb.views.tabs.stacks.stacks_tab import FILLS, available_metrics, stack_chart
from mtprof_nb.views.tabs.timeline.timeline_blocks import ROW_PIXELS, arranged

WIDTH = 860
_GUTTER = 96
_MOST_BLOCKS, _MOST_SLICES, _MOST_LEVELS = 300, 70, 12
_MOST_HEIGHT = 420
_CHARACTER = 6.2
_EDGE = 24
#: An image has no theme: this colour is readable on light and dark.
INK = "#7b838b"
LABEL = 'font-family="ui-sans-serif,system-ui,sans-serif" font-size="10.5"'


class _Block(NamedTuple):
    """A block: x and width in pixels, y and height in rows, its colours, and its text."""

    x: float
    y: float
    width: float
    height: float
    family: Family
    label: str


def timeline_svg(trace: Trace, show_all: bool = False, window: tuple[int, int] | None = None) -> str:
    """The timeline of the whole trace, or of a window of it; "" without events."""
    if not len(trace):
        return ""
    chart = arranged(trace, show_all)
    begin, end = window or chart.whole_ns
    room = WIDTH - _GUTTER
    blocks = chart.levels.window(begin, end, limit=_MOST_BLOCKS, pixels=room)
    family = chart.levels.parts(blocks, chart.family, len(FAMILIES)).dominant(len(blocks)).tolist()
    scale = room / (end - begin)
    # An area is a time: the height of a block of many events is its busy share.
    extent = np.maximum(blocks.end_ns - blocks.start_ns, 1)
    busy = np.where(blocks.count > 1, np.minimum(blocks.time_ns / extent, 1.0), 1.0).tolist()
    names = [short_name(trace.names[name]) for name in trace.name[blocks.event].tolist()]
    drawn = [
        _Block(
            _GUTTER + (start - begin) * scale,
            y + 0.44 - 0.88 * high,
            (stop - start) * scale,
            0.88 * high,
            FAMILIES[code],
            name if count == 1 else "",
        )
        for y, start, stop, high, code, name, count in zip(
            *(chart.row_y(blocks.row), blocks.start_ns.tolist(), blocks.end_ns.tolist()),
            *(busy, family, names, blocks.count.tolist()),
            strict=True,
        )
    ]
    titles = [_lane_title(lane.title, top) for lane, top in zip(chart.lanes.lanes, chart.lane_tops, strict=True)]
    height = min(chart.height * ROW_PIXELS, _MOST_HEIGHT)
    axis = _axis(end - begin, room, height)
    return svg_of([*titles, *_drawn(drawn), axis], height + 20, f"Timeline of {units.duration(end - begin)}")


def stacks_svg(trace: Trace, show_all: bool = False) -> str:
    """The stacks as an icicle, by time with Python if it was recorded, else by self time; "" where neither was."""
    if not (known := available_metrics(trace)):
        return ""
    chart = stack_chart(trace, show_all, not show_all)
    metric, described = next(iter(known.items()))
    total = chart.tree.with_callees(chart.own(metric))
    if not total[0]:
        return ""
    cut = slices(chart.tree, total, _MOST_SLICES)
    places = [place for place in _icicle(cut) if place[1] < _MOST_LEVELS]
    blocks = [
        _Block(
            left * WIDTH,
            level + 1.06,
            width * WIDTH,
            0.88,
            FILLS[chart.fill_of(int(cut.node[slice_]))],
            chart.label(int(cut.node[slice_]), int(cut.folded[slice_])),
        )
        for slice_, level, left, width in places
    ]
    deepest = max(level for _, level, _, _ in places)
    # With its title inside: where the picture is dropped, none is left over.
    title = f"Stacks by {described.title}"
    heading = f'<text x="0" y="13" fill="{INK}" font-weight="bold">{escaped(title)}</text>'
    return svg_of([heading, *_drawn(blocks)], (deepest + 2) * ROW_PIXELS, title)


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


def _drawn(blocks: list[_Block]) -> list[str]:
    """The blocks as one path for each colour, and their texts, where they fit, in one group for each ink."""
    paths: defaultdict[str, str] = defaultdict(str)
    texts: defaultdict[str, str] = defaultdict(str)
    for block in blocks:
        y, height = block.y * ROW_PIXELS, block.height * ROW_PIXELS
        wide, high = _short(block.width), _short(height)
        paths[block.family.colour] += f"M{_short(block.x)},{_short(y)}h{wide}v{high}h-{wide}z"
        if text := fitted(shown(block.label), int((block.width - 6) / _CHARACTER)):
            middle = f'x="{_short(block.x + block.width / 2)}" y="{_short(y + height / 2 + 3.6)}"'
            texts[block.family.ink] += f"<text {middle}>{escaped(text)}</text>"
    drawn = [f'<path fill="{colour}" d="{path}"/>' for colour, path in paths.items()]
    return drawn + [f'<g fill="{ink}" text-anchor="middle">{group}</g>' for ink, group in texts.items()]


def _short(value: float) -> str:
    return f"{round(value, 2):g}"


def _lane_title(title: str, top: float) -> str:
    short = fitted(shown(title), int(_GUTTER / _CHARACTER) - 1)
    return f'<text x="0" y="{(top + 0.5) * ROW_PIXELS + 4:.1f}" fill="{INK}">{escaped(short)}</text>'


def _axis(length_ns: int, room: float, height: float) -> str:
    marks = []
    for at_ns in round_ticks(length_ns):
        x = _GUTTER + room * at_ns / length_ns
        # A label in the middle of a mark at the edge would be cut.
        anchor = "start" if at_ns == 0 else "end" if WIDTH - x < _EDGE else "middle"
        text = units.duration(at_ns)
        marks.append(f'<text x="{x:.1f}" y="{height + 15:.1f}" fill="{INK}" text-anchor="{anchor}">{text}</text>')
    return f'<g opacity="0.75">{"".join(marks)}</g>'


def round_ticks(length_ns: int) -> list[int]:
    """Round moments from 0 to `length_ns`, at most six."""
    step = next(
        factor * 10**power for power in itertools.count() for factor in (1, 2, 5) if factor * 10**power * 5 >= length_ns
    )
    return list(range(0, length_ns + 1, step))


def svg_of(parts: list[str], height: float, title: str) -> str:
    """A picture of these parts, with a title for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="{escaped(title)}" {LABEL}>{"".join(parts)}</svg>'
    )


def image(svg: str, title: str) -> str:
    """`svg` as an image for HTML, "" for none.

    Inline SVG would not do: frontends that sanitize HTML drop its tags and keep its texts. They drop the content of
    this image too; then an empty `alt` leaves nothing, where another text would leave the sign of a broken image.
    """
    if not svg:
        return ""
    looks = f"width:100%;max-width:{WIDTH}px;display:block"
    encoded = b64encode(svg.encode()).decode()
    return f'<img alt="" title="{escaped(title)}" style="{looks}" src="data:image/svg+xml;base64,{encoded}">'
