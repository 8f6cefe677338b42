"""Stacks as a sunburst or an icicle of the call tree, with small slices folded together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.calltree import CallTree, call_tree, has_frames
from mtprof_nb.analysis.costs import Costs, averaged_costs, averaged_name, op_costs
from mtprof_nb.analysis.families import DARK_INK, FAMILIES, SCOPES, Family, families
from mtprof_nb.analysis.memory.memory_curve import allocated_bytes
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import file_label, is_user_file, source_location
from mtprof_nb.model.trace import Bool, Frame, Int64, Trace
from mtprof_nb.views import units
from mtprof_nb.views.escaped_text import hover, short_name
from mtprof_nb.views.scene import Answer, Question, Tab
from mtprof_nb.views.selection import selected_events
from mtprof_nb.views.weak_trace import WeakTraceHolder

Figure = Any

#: A chart with more slices is slow and not readable.
MOST_SLICES = 400
#: A slice under this share of the whole is folded into "other".
_SMALLEST_SHARE = 1 / 500
_FADED, _PASSED = 0.15, 0.75
_FADED_INK = "#8a9199"
#: The root and folded slices have no family.
_FOLDED = Family("", "#b3b9bf", DARK_INK)
_LIBRARY = Family("library code", "#a3adb8", DARK_INK)
#: Functions that only forward a call, by folder and file.
_PLUMBING = {
    "modules/module.py": ("_wrapped_call_impl", "_call_impl", "__call__"),
    "optim/optimizer.py": ("wrapper", "_use_grad", "profile_hook_step", "maybe_fallback"),
}


class Metric(NamedTuple):
    """A measure that slices are sized by: its title, its unit, and the flag that records it."""

    title: str
    unit: str
    flag: str = ""


METRICS = {
    "self": Metric("self time", "time"),
    "count": Metric("calls", "count"),
    "memory": Metric("allocated memory", "bytes", "--profile-memory"),
    "device": Metric("device time", "time"),
}


@dataclass(frozen=True, eq=False)
class Slices:
    """The nodes of a call tree that are drawn, the root first.

    `folded[i]` callees of slice `i`'s parent are in it, 0 for a node of the tree.
    """

    node: Int64
    parent: Int64
    folded: Int64
    total: Int64
    #: Frames above the root that called nothing else, outermost first.
    trunk: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.node)


def available_metrics(trace: Trace) -> dict[str, Metric]:
    """The metrics that this trace can be sized by."""
    there = {"memory": trace.recorded.profile_memory, "device": bool(np.any(trace.on_device))}
    return {key: metric for key, metric in METRICS.items() if there.get(key, True)}


def slices(tree: CallTree, total: Int64, most: int = MOST_SLICES) -> Slices:
    """The largest nodes; the other callees of a node are one slice "other", so that totals are conserved."""
    trunk = _trunk(tree, total)
    least = max(int(total[0] * _SMALLEST_SHARE), 1)
    # A callee's total is at most its caller's, so the largest nodes are connected.
    largest = np.lexsort((np.arange(len(tree)), -total))[: most + len(trunk) - 1]
    kept = np.sort(largest[((total[largest] >= least) & ~np.isin(largest, trunk)) | (largest == trunk[-1])])
    position = np.full(len(tree) + 1, -1, np.int64)
    position[kept] = np.arange(len(kept))
    left_out = np.flatnonzero((total > 0) & (position[:-1] < 0))
    left_out = left_out[position[tree.parent[left_out]] >= 0]
    owners, number = np.unique(position[tree.parent[left_out]], return_inverse=True)
    rest = np.zeros(len(owners), np.int64)
    np.add.at(rest, number, total[left_out])
    return Slices(
        node=np.concatenate([kept, np.full(len(owners), -1)]),
        parent=np.concatenate([position[tree.parent[kept]], owners]),
        folded=np.concatenate([np.zeros(len(kept), np.int64), np.bincount(number, minlength=len(owners))]),
        total=np.concatenate([total[kept], rest]),
        trunk=tuple(trunk[1:]),
    )


def _trunk(tree: CallTree, total: Int64) -> list[int]:
    """The root, and the frames below it that called everything: they carry no information and take space."""
    trunk = [0]
    while True:
        callees = np.flatnonzero((tree.parent == trunk[-1]) & (total > 0))
        if len(callees) != 1 or tree.frame[callees[0]] < 0 or total[callees[0]] != total[0]:
            return trunk
        trunk.append(int(callees[0]))


def is_plumbing(frame: Frame) -> bool:
    """Whether a frame only forwards a call: every module and optimizer of PyTorch has several of these."""
    if is_user_file(frame.file):
        return False
    file = "/".join(re.split(r"[/\\]", frame.file)[-2:])
    return frame.function in _PLUMBING.get(file, ()) or file.endswith("contextlib.py")


class StackChart(WeakTraceHolder):
    """The call tree of one trace, which can be drawn by any metric."""

    def __init__(self, trace: Trace, python: bool = False) -> None:
        super().__init__(trace)
        self.tree = call_tree(trace, python, None if python else is_plumbing)
        # If Python functions have nodes, the time of an op excludes theirs.
        self._costs: Costs = averaged_costs(trace) if python and not has_frames(trace) else op_costs(trace)
        self._family = families(trace)
        self._own: dict[str, Int64] = {}

    def own(self, metric: str) -> Int64:
        """The sum of `metric` over each node's own events; `ValueError` for a metric that was not recorded."""
        known = available_metrics(self.trace)
        if metric not in known:
            flag = METRICS[metric].flag if metric in METRICS else ""
            remedy = f"record it with {flag}, or " if flag else ""
            msg = f"no stacks by {metric!r}: {remedy}use one of {', '.join(known)}"
            raise ValueError(msg)
        if metric not in self._own:
            self._own[metric] = self.tree.own(self._values(metric))
        return self._own[metric]

    def _values(self, metric: str) -> Int64:
        costs = self._costs
        if metric == "count":
            return np.ones(len(self.trace), np.int64)
        if metric == "device" and costs.self_device_ns is not None:
            return costs.self_device_ns
        return self._allocated() if metric == "memory" else costs.self_ns

    def _allocated(self) -> Int64:
        """Bytes that each event allocated itself; without allocator records, the increase of held bytes."""
        costs, own = self._costs, allocated_bytes(self.trace)
        if own is not None:
            folded = np.flatnonzero(~costs.counted & (costs.parent >= 0))
            np.add.at(own, costs.parent[folded], own[folded])
            return own
        if costs.memory is None:
            return np.zeros(len(self.trace), np.int64)
        more: Int64 = np.maximum(costs.memory.self_cpu + costs.memory.self_device, 0)
        return more

    def picture(self, metric: str = "self", shape: str = "sunburst", chosen: Bool | None = None) -> Answer:
        """The plotly figure, as plain lists; slices without events in the mask `chosen` below them are faded."""
        own = self.own(metric)
        cut = slices(self.tree, self.tree.with_callees(own))
        nodes, strengths = cut.node.tolist(), self._strengths(cut, chosen).tolist()
        coloured = list(zip(map(self.family_of, nodes), strengths, strict=True))
        colours = [translucent(family.colour, part) for family, part in coloured]
        inks = [_FADED_INK if part == _FADED else family.ink for family, part in coloured]
        trace = {
            "type": shape,
            "ids": [str(position) for position in range(len(nodes))],
            "parents": ["" if position < 0 else str(position) for position in cut.parent.tolist()],
            "labels": [hover(label) for label in self._labels(cut)],
            "values": cut.total.tolist(),
            "branchvalues": "total",
            "sort": True,
            "marker": {"colors": colours, "line": {"width": 1, "color": "rgba(255,255,255,0.6)"}},
            # plotly uses the outside font for the root.
            "insidetextfont": {"color": inks},
            "outsidetextfont": {"color": inks},
            "leaf": {"opacity": 1},
            "customdata": [self._clicked(node) for node in nodes],
            "hovertext": self._hovers(cut, own, METRICS[metric]),
            "hoverinfo": "text",
            "textinfo": "label",
            **_SHAPES[shape],
        }
        return {"data": [trace], "layout": {"margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "uniformtext": _UNIFORM_TEXT}}

    def _clicked(self, node: int) -> list[int]:
        """The event, and its name, that a click on a node selects."""
        event = int(self.tree.event[node]) if node > 0 else -1
        return [event, int(self.trace.name[event]) if event >= 0 else -1]

    def _frame(self, node: int) -> Frame | None:
        position = int(self.tree.frame[node])
        return self.trace.stacks.frames[position] if self.trace.stacks is not None and position >= 0 else None

    def _labels(self, cut: Slices) -> list[str]:
        labels = [self.label(*slice_) for slice_ in zip(cut.node.tolist(), cut.folded.tolist(), strict=True)]
        # The middle of a sunburst is small.
        frame = self._frame(int(cut.node[0]))
        return [frame.function if frame else "all", *labels[1:]]

    def label(self, node: int, folded: int = 0) -> str:
        """The text inside a slice."""
        if node < 0:
            return f"other ({units.number(folded)})"
        if node == 0:
            return "all"
        frame = self._frame(node)
        return f"{frame.function}  {file_label(frame.file)}:{frame.line}" if frame else short_name(self._name(node))

    def _name(self, node: int) -> str:
        return averaged_name(self.trace.names[self.trace.name[self.tree.event[node]]])

    def _strengths(self, cut: Slices, chosen: Bool | None) -> npt.NDArray[np.float64]:
        """Opacity of each slice: full if it has chosen events, less if only its callees have."""
        if chosen is None:
            return np.ones(len(cut))
        held = self.tree.own(chosen.astype(np.int64))
        below = self.tree.with_callees(held)
        strength = np.where(held > 0, 1.0, np.where(below > 0, _PASSED, _FADED))[cut.node]
        strength[cut.node < 0] = _FADED
        return strength

    def family_of(self, node: int) -> Family:
        """The family that colours a node: of an op its own; of a frame one for user files or one for libraries."""
        if node <= 0:
            return _FOLDED
        if frame := self._frame(node):
            return FAMILIES[SCOPES] if is_user_file(frame.file) else _LIBRARY
        return FAMILIES[self._family[self.tree.event[node]]]

    def _hovers(self, cut: Slices, own: Int64, metric: Metric) -> list[str]:
        write = units.WRITERS[metric.unit]
        whole = int(cut.total[0])
        texts = []
        for node, folded, total in zip(cut.node.tolist(), cut.folded.tolist(), cut.total.tolist(), strict=True):
            amount = f"{write(total)} {metric.title}, {units.share(total, whole)} of all"
            if node < 0:
                texts.append(f"<b>{units.plural(folded, 'small slice')}</b><br>{amount}")
                continue
            of_it = f"<br>{write(int(own[node]))} of it its own" if 0 < own[node] < total else ""
            texts.append(f"<b>{hover(self.full_name(node))}</b><br>{amount}{of_it}")
        called = [hover(self.full_name(node)) for node in reversed(cut.trunk[:-1])]
        texts[0] = "<br>called by ".join([texts[0], *called])
        return texts

    def full_name(self, node: int) -> str:
        """The whole name of a node: function, file and line of a frame."""
        if node <= 0:
            return "all ops" if node == 0 else "small slices"
        frame = self._frame(node)
        return f"{frame.function}, {source_location(frame.file, frame.line)}" if frame else self._name(node)


_UNIFORM_TEXT = {"minsize": 9, "mode": "hide"}
_SHAPES: dict[str, dict[str, Any]] = {
    "sunburst": {"maxdepth": 7, "insidetextorientation": "auto"},
    "icicle": {"maxdepth": 16, "tiling": {"orientation": "v", "pad": 1}, "pathbar": {"visible": False}},
}


def translucent(colour: str, part: float) -> str:
    """A colour with the opacity `part`."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return colour if part >= 1 else f"rgba({red},{green},{blue},{part:g})"


#: The trace's `StackChart`, made once.
stack_chart = once_a_trace(StackChart)


def sunburst(trace: Trace, metric: str = "self") -> Figure:
    """Stacks from the middle outwards as a plotly figure; `metric` is self, count, memory or device."""
    return _figure(trace, metric, "sunburst")


def icicle(trace: Trace, metric: str = "self") -> Figure:
    """Stacks from the top down as a plotly figure; `metric` is self, count, memory or device."""
    return _figure(trace, metric, "icicle")


def _figure(trace: Trace, metric: str, shape: str) -> Figure:
    import plotly.graph_objects as go

    return go.Figure(stack_chart(trace, False).picture(metric, shape))


class StacksTab(Tab):
    """Answers questions for stack charts."""

    def first(self) -> Answer:
        """The icicle by self time, and the available metrics."""
        trace = self._scene.trace
        if not len(trace):
            return {"empty": "Nothing was recorded, so there are no stacks."}
        return {
            "metrics": [{"key": key, "title": metric.title} for key, metric in available_metrics(trace).items()],
            "note": "" if has_frames(trace) else "Scopes and ops as they nested. --with-stack adds source frames.",
            **self._drawn("self", "icicle"),
        }

    def answer(self, question: Question) -> Answer:
        """The chart of a metric in a shape, with the selection lit."""
        return self._drawn(question["metric"], question["shape"], selected_events(self._scene, question))

    def _drawn(self, metric: str, shape: str, chosen: Bool | None = None) -> Answer:
        chart = stack_chart(self._scene.trace, self._scene.show_all)
        picture = chart.picture(metric, shape, chosen)
        return {"metric": metric, "shape": shape, "picture": picture}
