"""Figures 7: what a panel sends to the page, how long it takes to make, and the size of its static HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

from benchmarks.figure import Figure, Spread
from benchmarks.repeated import recording, repeated
from benchmarks.sampling import Lap, Rounds, Sample, Scale, Way, in_turns
from mtprof_nb.model.trace import Trace

GROUP = "7 panel"
_MOST = 1_000_000
_PEER = "FigureWidget"


def figures(scale: Scale) -> list[Figure]:
    """Panels of growing recordings, beside a plotly FigureWidget of the same timeline."""
    pattern = recording(max(scale.steps // 12, 1), with_stack=True, record_shapes=True)
    found = []
    for size in [size for size in scale.sizes if size <= _MOST]:
        found += _size_figures(repeated(pattern, size), scale)
    return found


def _size_figures(trace: Trace, scale: Scale) -> list[Figure]:
    ways: dict[str, Way] = {"panel": partial(_panel, trace), _PEER: partial(_figure_widget, trace)}
    rounds = in_turns(ways, scale, scale.share(0.01))
    title = f"{len(trace):,} events"
    return [
        _beside_peer(rounds, f"{title}: bytes of the first show", "first show"),
        _beside_peer(rounds, f"{title}: bytes of the second show", "second show"),
        rounds.figure(GROUP, f"{title}: time to make", "panel", _PEER, "made"),
        Figure(GROUP, f"{title}: static HTML", "", _kilobytes(rounds, "html"), len(rounds), unit="kB"),
    ]


def _beside_peer(rounds: Rounds, title: str, what: str) -> Figure:
    behind = " / ".join(f"{rounds.median(way, what) / 1000:,.0f} kB" for way in ("panel", _PEER))
    return rounds.figure(GROUP, title, "panel", _PEER, what, behind=behind)


def _kilobytes(rounds: Rounds, what: str) -> Spread:
    return Spread.of([value / 1000 for value in rounds.values("panel", what)])


def _panel(kept: Trace) -> Sample:
    """A page shows a panel, then another one."""
    from dataclasses import replace

    from mtprof_nb.views.panel.show_panel import panel

    with sent_bytes() as sent:
        lap = Lap()
        widget = panel(replace(kept))
        lap("made")
        first = sent()
        again = panel(replace(kept))
        second = sent() - first
        bundle, _ = widget._repr_mimebundle_() or ({"text/html": ""}, {})
    widget.close()
    again.close()
    return {**lap.times, "first show": first, "second show": second, "html": len(bundle["text/html"].encode())}


def _figure_widget(kept: Trace) -> Sample:
    """Timeline in plotly's own widget."""
    from dataclasses import replace

    import plotly.graph_objects as go

    from mtprof_nb.views.tabs.timeline.timeline_figure import timeline

    with sent_bytes() as sent:
        lap = Lap()
        widget = go.FigureWidget(timeline(replace(kept)))
        lap("made")
        first = sent()
        again = go.FigureWidget(timeline(replace(kept)))
        second = sent() - first
    widget.close()
    again.close()
    return {**lap.times, "first show": first, "second show": second}


@contextmanager
def sent_bytes() -> Iterator[Callable[[], int]]:
    """Counts what widgets would send to a page: JSON and buffers of every message."""
    from comm.base_comm import BaseComm

    count = 0

    class Counting(BaseComm):
        def publish_msg(self, *kind: Any, buffers: Any = None, **message: Any) -> None:
            nonlocal count
            count += len(json.dumps([kind, message], default=str))
            count += sum(memoryview(buffer).nbytes for buffer in buffers or ())

    with mock.patch("comm.create_comm", Counting):
        yield lambda: count
