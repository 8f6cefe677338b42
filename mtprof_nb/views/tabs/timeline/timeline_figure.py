"""The timeline as a plotly figure: what the panel draws of the whole recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.analysis.units import duration, plural
from mtprof_nb.model.trace import PHASES, Trace
from mtprof_nb.views.escaped_text import fitted, hover, short_name
from mtprof_nb.views.figure import Figure, Plotly, figure
from mtprof_nb.views.scene import Answer
from mtprof_nb.views.tabs.timeline.timeline_blocks import ROW_PIXELS, Timeline, arranged

_PIXELS = 1_000
_ROW_HEIGHT, _RIBBON_HEIGHT = 0.88, 0.66
_MARGIN = {"l": 92, "r": 12, "t": 20, "b": 34}
_CHARACTER_PIXELS = 6.4
#: Phases differ by pattern: colours are for op families.
_HATCH = {"forward": "", "backward": "/", "optimizer": "|", "other": ".", "compiling": "x"}
_GREY = "#8a9199"


def timeline(trace: Trace, python: bool = False) -> Figure:
    """The whole trace as a plotly figure of at most 2,000 blocks; `python` adds the Python frames."""
    chart = arranged(trace, python)
    drawn = chart.window(*chart.whole_ns, _PIXELS)
    traces = [_phases(chart, drawn["phases"]), _bars(chart, drawn, has_steps(trace)), _ticks(chart, drawn)]
    return figure(trace, [*traces, _names(trace, chart, drawn)], _layout(chart, drawn["steps"]))


def time_axis(begin: float, end: float) -> Plotly:
    """An axis of seconds since the recording began."""
    return {"range": [begin, end], "tickformat": "~s", "ticksuffix": "s", "zeroline": False}


def _seconds(ns: Any) -> list[float]:
    in_s: list[float] = (np.asarray(ns) / 1e9).tolist()
    return in_s


def _phases(chart: Timeline, phases: Answer) -> Plotly:
    names = [PHASES[phase] for phase in phases["phase"]]
    tops = [chart.lane_tops[lane] for lane in phases["lane"]]
    return {
        **_horizontal("phases", phases["start_ns"], phases["length_ns"]),
        "y": [top + _RIBBON_HEIGHT / 2 + 0.05 for top in tops],
        "width": _RIBBON_HEIGHT,
        "marker": {
            "color": "rgba(138,145,153,0.18)",
            "pattern": {"shape": [_HATCH[name] for name in names], "fgcolor": _GREY, "size": 5, "solidity": 0.14},
            "line": {"width": 0},
        },
        "hovertext": [f"<b>{name}</b>, {duration(ns)}" for name, ns in zip(names, phases["length_ns"], strict=True)],
    }


def _bars(chart: Timeline, drawn: Answer, steps: bool) -> Plotly:
    """Bars: an event fills its row; in a block of many, the height of a family is its share of the block's extent."""
    bars, blocks = drawn["bars"], {key: np.array(column) for key, column in drawn["blocks"].items()}
    block = np.array(bars["block"], np.int64)
    extent = np.maximum(blocks["length_ns"], 1)
    busy = np.where(blocks["count"][block] > 1, np.array(bars["time_ns"]) / extent[block], 1.0)
    height = busy * _ROW_HEIGHT
    below = np.cumsum(height)
    first = np.searchsorted(block, np.arange(len(extent)))
    below -= np.append(0.0, below)[first][block] + height
    middle = np.array(chart.row_y(blocks["row"]))
    return {
        **_horizontal("events", blocks["start_ns"][block], blocks["length_ns"][block]),
        "y": (middle[block] + _ROW_HEIGHT / 2 - below - height / 2).round(4).tolist() if len(block) else [],
        "width": height.round(4).tolist(),
        "marker": {"color": [FAMILIES[code].colour for code in bars["family"]], "line": {"width": 0}},
        "hovertext": [_hover(drawn, bar, steps) for bar in range(len(block))],
    }


def _horizontal(name: str, start_ns: Any, length_ns: Any) -> Plotly:
    base, x = _seconds(start_ns), _seconds(length_ns)
    return {"type": "bar", "name": name, "orientation": "h", "base": base, "x": x, "hoverinfo": "text"}


def _hover(drawn: Answer, bar: int, steps: bool) -> str:
    bars, blocks, texts = drawn["bars"], drawn["blocks"], drawn["texts"]
    block = bars["block"][bar]
    name = hover(texts["names"][bars["name"][bar]])
    took, own, count = bars["took_ns"][bar], bars["self_ns"][bar], blocks["count"][block]
    if count > 1:
        title = FAMILIES[bars["family"][bar]].title
        whole = f"{duration(blocks['time_ns'][block])} in {duration(blocks['length_ns'][block])}"
        part = f"{title}: {plural(bars['count'][bar], 'event')}, {duration(bars['time_ns'][bar])}"
        return f"<b>{plural(count, 'event')}</b>, {whole}<br>{part}<br>longest {name}, {duration(took)}"
    self_time = f" (self {duration(own)})" if own >= 0 and own != took else ""
    inputs = texts["shapes"].get(bars["shape"][bar], "")
    lines = [
        f"<b>{name}</b>",
        f"{duration(took)}{self_time}, at {duration(blocks['start_ns'][block])}",
        PHASES[bars["phase"][bar]] + (f", step {bars['step'][bar]}" if steps else ""),
        f"inputs {hover(inputs)}" if inputs else "",
        hover(texts["lines"].get(bars["line"][bar], "")),
    ]
    return "<br>".join(filter(None, lines))


def _ticks(chart: Timeline, drawn: Answer) -> Plotly:
    """Ticks at blocks that are narrower than a pixel; the blocks keep their true width."""
    bars, blocks = drawn["bars"], {key: np.array(column) for key, column in drawn["blocks"].items()}
    first = np.unique(np.array(bars["block"], np.int64), return_index=True)[1]
    narrow = np.flatnonzero(blocks["length_ns"] < drawn["pixel_ns"])
    colours = [FAMILIES[bars["family"][bar]].colour for bar in first[narrow].tolist()]
    return {
        "type": "scatter",
        "name": "shorter than a pixel",
        "mode": "markers",
        "x": _seconds(blocks["start_ns"][narrow]),
        "y": chart.row_y(blocks["row"][narrow]),
        "marker": {"symbol": "line-ns", "size": 11, "line": {"width": 1, "color": colours}},
        "hoverinfo": "skip",
    }


def _names(trace: Trace, chart: Timeline, drawn: Answer) -> Plotly:
    """Names in the middle of each event that is wide enough."""
    bars, blocks = drawn["bars"], {key: np.array(column) for key, column in drawn["blocks"].items()}
    block = np.array(bars["block"], np.int64)
    room = (blocks["length_ns"][block] / drawn["pixel_ns"] - 6) / _CHARACTER_PIXELS
    wide = np.flatnonzero((room >= 1) & (blocks["count"][block] == 1)).tolist()
    texts = {bar: fitted(short_name(trace.names[bars["name"][bar]]), int(room[bar])) for bar in wide}
    named = [bar for bar in wide if texts[bar]]
    middle = blocks["start_ns"][block[named]] + blocks["length_ns"][block[named]] // 2
    return {
        "type": "scatter",
        "name": "names",
        "mode": "text",
        "x": _seconds(middle),
        "y": chart.row_y(blocks["row"][block[named]]),
        "text": [hover(texts[bar]).replace("<br>", "") for bar in named],
        "textfont": {"size": 11, "color": [FAMILIES[bars["family"][bar]].ink for bar in named]},
        "hoverinfo": "skip",
    }


def _layout(chart: Timeline, steps: Answer) -> Plotly:
    rows = chart.lane_rows()
    line = {"color": "rgba(138,145,153,0.35)", "width": 1}
    down = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    label = {"yref": "paper", "y": 1, "yanchor": "bottom", "xanchor": "left", "showarrow": False, "font": {"size": 10}}
    starts = _seconds(steps["start_ns"])
    return {
        "barmode": "overlay",
        "bargap": 0,
        "showlegend": False,
        "hovermode": "closest",
        "height": round(chart.height * ROW_PIXELS) + _MARGIN["t"] + _MARGIN["b"],
        "margin": _MARGIN,
        "xaxis": time_axis(0, (chart.whole_ns[1] - chart.whole_ns[0]) / 1e9),
        "yaxis": {
            "range": [chart.height, 0],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
            "tickvals": [(lane["top"] + lane["bottom"]) / 2 for lane in rows],
            "ticktext": [hover(fitted(lane["title"], 13)) for lane in rows],
        },
        "shapes": [{**down, "x0": x, "x1": x, "line": {**line, "dash": "dot"}} for x in starts],
        "annotations": [
            {**label, "x": x, "text": f"step {step}"} for step, x in zip(steps["number"], starts, strict=True)
        ],
    }
