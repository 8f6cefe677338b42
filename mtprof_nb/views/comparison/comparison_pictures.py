"""Pictures of a comparison for pages without scripts: the measured times as dots, and a step of both timelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.comparison.compared import Compared
from mtprof_nb.comparison.measured_points import MeasuredPoints, measured_points
from mtprof_nb.views.comparison.comparison_tables import labels
from mtprof_nb.views.static.svg import INK, WIDTH, image, svg_of, timeline_svg
from mtprof_nb.views.tabs.two_timelines.two_timelines_tab import step_pairs

#: Colours of a and b, also on the page.
A_COLOUR, B_COLOUR = "#f2a02c", "#1f77d0"
_HEIGHT, _LEFT, _EDGE = 120, 64, 6
#: Dots above so many medians of their side are drawn at the upper edge.
_WITHIN = 2.5


def pictures(compared: Compared) -> list[tuple[str, str]]:
    """Title and HTML of each picture; without recordings, of the dots alone."""
    points = measured_points(compared)
    titled = [(points_title(points), image(points_svg(points), points_title(points)))]
    runs = compared.sides.all_runs
    if runs and all(len(run) for run in runs):
        titled += _timelines(compared)
    return titled


def points_title(points: MeasuredPoints) -> str:
    """The title of the dots."""
    return f"Times: a dot for each {points.unit}"


def points_svg(points: MeasuredPoints) -> str:
    """Times of both sides as dots, run after run, with a line at the median of each side."""
    low, high = scale_of(points)
    dots = [_dots(points.a, A_COLOUR, low, high), _dots(points.b, B_COLOUR, low, high)]
    marks = [_mark(low, low, high), _mark(high, low, high)]
    return svg_of([*dots, *marks], _HEIGHT, points_title(points))


def scale_of(points: MeasuredPoints) -> tuple[float, float]:
    """The lowest and the highest time of the axis, without very long ones."""
    sides = [[time for run in runs for time in run] or [0.0] for runs in (points.a, points.b)]
    low = 0.97 * min(map(min, sides))
    high = 1.03 * max(min(max(side), _WITHIN * float(np.median(side))) for side in sides)
    return low, max(high, low + 1)


def places(runs: Sequence[Sequence[float]]) -> Iterator[tuple[float, float]]:
    """For each point its place from 0 to 1, in which each run takes an equal part, and its time."""
    for number, run in enumerate(runs):
        for at, time in enumerate(run):
            yield (number + (at + 0.5) / len(run)) / len(runs), time


def _dots(runs: Sequence[Sequence[float]], colour: str, low: float, high: float) -> str:
    room = WIDTH - _LEFT - _EDGE
    circles = "".join(
        f'<circle cx="{_LEFT + room * place:.1f}" cy="{_y(time, low, high):.1f}" r="2" fill="{colour}" opacity="0.7"/>'
        for place, time in places(runs)
    )
    middle = _y(float(np.median([time for run in runs for time in run] or [0.0])), low, high)
    line = f'<line x1="{_LEFT}" x2="{WIDTH - _EDGE}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="{colour}"/>'
    return circles + line


def _y(time: float, low: float, high: float) -> float:
    return _EDGE + (_HEIGHT - 2 * _EDGE) * (1 - (min(time, high) - low) / (high - low))


def _mark(time: float, low: float, high: float) -> str:
    y = _y(time, low, high) + 4
    return f'<text x="{_LEFT - 8}" y="{y:.1f}" text-anchor="end" fill="{INK}">{units.duration(time)}</text>'


def _timelines(compared: Compared) -> list[tuple[str, str]]:
    pair = step_pairs(compared.sides)[0]
    titles = [f"{pair.title.capitalize()} of {label}" for label in labels(compared)]
    runs = compared.sides.a.runs[0], compared.sides.b.runs[0]
    return [
        (title, image(timeline_svg(run, window=(step.start_ns, step.start_ns + pair.length_ns)), title))
        for title, run, step in zip(titles, runs, (pair.a, pair.b), strict=True)
    ]
