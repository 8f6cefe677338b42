"""Stacks: the call tree as slices for an icicle or a sunburst, with small slices folded together."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import Costs, averaged_costs, averaged_name, op_costs
from mtprof_nb.analysis.families import DARK_INK, FAMILIES, SCOPES, Family, families
from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.memory.memory_curve import allocated_bytes
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.analysis.stacks.calltree import call_tree, has_frames
from mtprof_nb.model.source_files import file_label, is_user_file, library_of, source_location
from mtprof_nb.model.trace import Bool, Frame, Int64, Trace
from mtprof_nb.views.escaped_text import short_name, shown
from mtprof_nb.views.scene import Answer, Question, Tab
from mtprof_nb.views.selection import SOURCE, pair_columns, pairs, recorded_groupings, rows_of_events
from mtprof_nb.views.tabs.stacks.stack_slices import Slices, slices
from mtprof_nb.views.weak_trace import WeakTraceHolder

#: Colours of slices: the families, then the root and folded slices, which have none, then frames of libraries.
FILLS = (*FAMILIES, Family("", "#b3b9bf", DARK_INK), Family("library code", "#a3adb8", DARK_INK))
_FOLDED, _LIBRARY = len(FAMILIES), len(FAMILIES) + 1
#: Functions that only forward a call, by folder and file.
_PLUMBING = {
    "modules/module.py": ("_wrapped_call_impl", "_call_impl", "__call__"),
    "optim/optimizer.py": ("wrapper", "_use_grad", "profile_hook_step", "maybe_fallback"),
}


#: The most numbers, of slices by ranks, that are computed for a chart.
_MOST_CELLS = 5_000_000


class Metric(NamedTuple):
    """A measure that slices are sized by: its title, its unit, and the flag that records it."""

    title: str
    unit: str
    flag: str = ""


#: In the order in which they are offered; the first that was recorded is shown first.
METRICS = {
    "python": Metric("time with Python", "time", "--with-stack and --python"),
    "self": Metric("self time", "time"),
    "count": Metric("calls", "count"),
    "memory": Metric("allocated memory", "bytes", "--profile-memory"),
    "device": Metric("device time", "time"),
}


def available_metrics(trace: Trace) -> dict[str, Metric]:
    """The metrics that this trace can be sized by."""
    there = {
        **dict.fromkeys(("self", "count"), len(trace) > 0),
        "memory": trace.recorded.profile_memory and len(trace) > 0,
        "device": bool(np.any(trace.on_device)),
        "python": trace.samples is not None and has_frames(trace),
    }
    return {key: metric for key, metric in METRICS.items() if there.get(key, True)}


def is_plumbing(frame: Frame) -> bool:
    """Whether a frame only forwards a call: every module and optimizer of PyTorch has several of these."""
    if is_user_file(frame.file):
        return False
    file = "/".join(re.split(r"[/\\]", frame.file)[-2:])
    return frame.function in _PLUMBING.get(file, ()) or file.endswith("contextlib.py")


def _library(frame: Frame) -> str:
    return library_of(frame.file)


class StackChart(WeakTraceHolder):
    """The call tree of one trace, which can be drawn by any metric."""

    def __init__(self, trace: Trace, python: bool = False, folds: bool = False) -> None:
        """`python`: with all frames and Python functions. `folds`: the frames of each library are one slice."""
        super().__init__(trace)
        self.tree = call_tree(trace, python, None if python else is_plumbing, _library if folds else None)
        # If Python functions have nodes, the time of an op excludes theirs.
        self._costs: Costs = averaged_costs(trace) if python and not has_frames(trace) else op_costs(trace)
        self._family = families(trace)
        self._own: dict[str, Int64] = {}

    def own(self, metric: str) -> Int64:
        """The sum of `metric` over each node's own events; `ValueError` for a metric that was not recorded."""
        known = available_metrics(self.trace)
        if not known:
            msg = "the recording has no stacks, for it has no events: record a program that runs ops"
            raise ValueError(msg)
        if metric not in known:
            flag = METRICS[metric].flag if metric in METRICS else ""
            remedy = f"record it with {flag}, or " if flag else ""
            msg = f"no stacks by {metric!r}: {remedy}use one of {', '.join(known)}"
            raise ValueError(msg)
        if metric not in self._own:
            self._own[metric] = self.tree.own(self._values(metric))
            if metric == "python":
                self._own[metric] += self._between_ops()
        return self._own[metric]

    def _values(self, metric: str) -> Int64:
        costs = self._costs
        if metric == "count":
            return np.ones(len(self.trace), np.int64)
        if metric == "device" and costs.self_device_ns is not None:
            return costs.self_device_ns
        return self._allocated() if metric == "memory" else costs.self_ns

    def _between_ops(self) -> Int64:
        """For each node the time of its frame in Python code and in waiting, estimated from samples."""
        time = stack_time(self.trace)
        if time is None:
            return np.zeros(len(self.tree), np.int64)
        return sums(self.tree.of_stack[time.stack], time.python_ns + time.waiting_ns, len(self.tree))

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

    def chart(self, metric: str = "self") -> Answer:
        """Columns of the slices to draw, the root first, each with its caller's position."""
        own, cut = self.own(metric), self._cut(metric)
        nodes = cut.node.tolist()
        return {
            "metric": metric,
            "title": METRICS[metric].title,
            "unit": METRICS[metric].unit,
            "slices": {
                "parent": cut.parent.tolist(),
                "label": [shown(label) for label in self._labels(cut)],
                "full": [shown(self.full_name(node)) for node in nodes],
                "total": cut.total.tolist(),
                "own": np.where(cut.node >= 0, own[cut.node], 0).tolist(),
                "folded": cut.folded.tolist(),
                "fill": [self.fill_of(node) for node in nodes],
                "library": ["", *(shown(self._library_of(node)) for node in nodes[1:])],
                "event": [self._event(node) for node in nodes],
                "name": [self._name_of(node) for node in nodes],
                "line": [self._line_of(node) for node in nodes],
                "ranks": self._ranks(cut, metric),
            },
            "called_by": [shown(self.full_name(node)) for node in reversed(cut.trunk[:-1])],
        }

    def _ranks(self, cut: Slices, metric: str) -> list[str] | None:
        """Where each slice is the least, median and most of the ranks; None for one process, or very many."""
        trace, tree = self.trace, self.tree
        if len(trace.processes) < 2 or len(tree) * len(trace.processes) > _MOST_CELLS or metric == "python":
            return None
        processes, known = len(trace.processes), np.flatnonzero(tree.of_event > 0)
        cell = tree.of_event[known].astype(np.int64) * processes + trace.processes_of(trace.track[known])
        own = sums(cell, self._values(metric)[known], len(tree) * processes).reshape(len(tree), processes)
        totals = np.stack([tree.with_callees(one)[cut.node] for one in own.T])
        write, names = units.WRITERS[METRICS[metric].unit], titles(trace)
        columns = (totals.min(axis=0), np.median(totals, axis=0), totals.max(axis=0), totals.argmax(axis=0))
        rows = zip(*(column.astype(np.int64).tolist() for column in columns), cut.node.tolist(), strict=True)
        return [
            f"{write(least)} to {write(most)} on one rank, median {write(median)}, most on {shown(names[who])}"
            if node >= 0
            else ""
            for least, median, most, who, node in rows
        ]

    def _cut(self, metric: str) -> Slices:
        return slices(self.tree, self.tree.with_callees(self.own(metric)), is_folded=self._is_folded)

    @cached_property
    def _is_folded(self) -> Bool:
        """Which nodes are frames of the same library as their caller: a page folds these."""
        library = np.array([self._library_of(node) for node in range(len(self.tree))])
        is_folded: Bool = (library != "") & (library == library[self.tree.parent])
        return is_folded

    def _library_of(self, node: int) -> str:
        frame = self._frame(node) if node > 0 else None
        return library_of(frame.file) if frame else ""

    def slices_of_nodes(self, metric: str) -> tuple[Int64, Int64]:
        """For each node the slice that it is drawn as, or -1; and for one that is not drawn, the slice above it."""
        cut = self._cut(metric)
        drawn = np.full(len(self.tree), -1, np.int64)
        drawn[cut.node[cut.node >= 0]] = np.flatnonzero(cut.node >= 0)
        above = drawn.copy()
        # A caller has a lower number.
        for node in np.flatnonzero(drawn < 0).tolist():
            above[node] = above[self.tree.parent[node]] if node else -1
        return drawn, np.where(drawn < 0, above, -1)

    def _event(self, node: int) -> int:
        """The event that a click on a node selects, -1 for none."""
        return int(self.tree.event[node]) if node > 0 else -1

    def _name_of(self, node: int) -> int:
        event = self._event(node)
        return int(self.trace.name[event]) if event >= 0 else -1

    def _line_of(self, node: int) -> int:
        event = self._event(node)
        return int(attribution(self.trace).line[event]) if event >= 0 else -1

    def _frame(self, node: int) -> Frame | None:
        position = int(self.tree.frame[node])
        return self.trace.stacks.frames[position] if self.trace.stacks is not None and position >= 0 else None

    def _labels(self, cut: Slices) -> list[str]:
        labels = [self.label(*slice_) for slice_ in zip(cut.node.tolist(), cut.folded.tolist(), strict=True)]
        # The middle of a sunburst is small.
        frame = self._frame(int(cut.node[0]))
        is_single = frame is not None and self.tree.frames[cut.node[0]] == 1
        return [frame.function if frame and is_single else labels[0], *labels[1:]]

    def label(self, node: int, folded: int = 0) -> str:
        """The text inside a slice."""
        if node < 0:
            return f"other ({units.number(folded)})"
        if node == 0:
            return "all"
        frame, frames = self._frame(node), self.tree.frames[node]
        if frame is None:
            return short_name(self._name(node))
        if frames > 1:
            return f"{library_of(frame.file)} ({frames} frames)"
        return f"{frame.function}  {file_label(self.trace, frame.file)}:{frame.line}"

    def _name(self, node: int) -> str:
        return averaged_name(self.trace.names[self.trace.name[self.tree.event[node]]])

    def fill_of(self, node: int) -> int:
        """The position in `FILLS` of a node's colour: of an op its family's; of a frame the user's or a library's."""
        if node <= 0:
            return _FOLDED
        if frame := self._frame(node):
            return SCOPES if is_user_file(frame.file) else _LIBRARY
        return int(self._family[self.tree.event[node]])

    def full_name(self, node: int) -> str:
        """The whole name of a node: function, file and line of a frame."""
        if node <= 0:
            return "all ops" if node == 0 else "small slices"
        frame, frames = self._frame(node), self.tree.frames[node]
        if frame is None:
            return self._name(node)
        if frames > 1:
            return f"{frames} frames of {library_of(frame.file)}"
        return f"{frame.function}, {source_location(self.trace, frame.file, frame.line)}"


#: The trace's `StackChart`, made once.
stack_chart = once_a_trace(StackChart)


class StacksTab(Tab):
    """Answers questions for stack charts."""

    def first(self) -> Answer:
        """The chart by the first metric, and the available ones."""
        trace = self._scene.trace
        if not available_metrics(trace):
            return {"empty": "Nothing was recorded, so there are no stacks."}
        return {
            "metrics": [{"key": key, "title": metric.title} for key, metric in available_metrics(trace).items()],
            "note": "" if has_frames(trace) else "Scopes and ops as they nested. --with-stack adds source frames.",
            "fills": [fill._asdict() for fill in FILLS],
            "folds": not self._scene.show_all,
            **self._chart.chart(next(iter(available_metrics(trace)))),
        }

    def answer(self, question: Question) -> Answer | None:
        """The `chart` of a metric; the slices that each row of a grouping has `lit` in it."""
        if question["ask"] == "chart":
            return self._chart.chart(question["metric"])
        if question["ask"] == "lit":
            return self._lit(question["metric"], question["grouping"])
        return super().answer(question)

    def carried(self) -> list[Question]:
        metrics = available_metrics(self._scene.trace)
        groupings = [*recorded_groupings(self._scene.trace), SOURCE]
        return [
            *({"ask": "chart", "metric": metric} for metric in metrics),
            *({"ask": "lit", "metric": metric, "grouping": one} for metric in metrics for one in groupings),
        ]

    def _lit(self, metric: str, grouping: str) -> Answer:
        """The slices with `own` events of each row, and those above events that are not drawn."""
        of_event = self._chart.tree.of_event
        node_of = np.where(of_event > 0, of_event, np.int32(-1))
        row, node = pairs(rows_of_events(self._scene, grouping), node_of)
        own, below = (pair_columns(pairs(row, of[node])) for of in self._chart.slices_of_nodes(metric))
        return {"own": own, "below": below}

    @property
    def _chart(self) -> StackChart:
        return stack_chart(self._scene.trace, self._scene.show_all)
