"""The call tree, summed over all calls: source frames where they were recorded, then nested ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.costs import averaged_costs
from mtprof_nb.analysis.devices.kernel_owners import owns_kernels
from mtprof_nb.analysis.groups import name_ids, sums
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.stacks.stack_metrics import with_called
from mtprof_nb.model.trace import OP, PYTHON, SCOPE, Bool, Frame, Int32, Int64, StackTree, Trace

#: Calls that are nested deeper count with the node around them.
MOST_LEVELS = 1_000


@dataclass(frozen=True, eq=False)
class CallTree:
    """A tree of calls. A parent's number is lower than its children's; node 0 is the root."""

    parent: Int32
    #: The source frame of a node, as a position in `StackTree.frames`, or -1.
    frame: Int32
    #: The first event of the node, which has its name; -1 for a frame and for the root.
    event: Int32
    #: The node of each event of the trace, 0 where it belongs to none.
    of_event: Int32
    #: The node of each stack of the trace, and last the root, for none. Only the root where frames are no nodes.
    of_stack: Int32
    #: How many source frames the node stands for: more than one where the frames of a library are folded.
    frames: Int32

    def __len__(self) -> int:
        return len(self.parent)

    def own(self, values: Int64) -> Int64:
        """For each node the sum of `values` (one an event) over its own events."""
        total = sums(self.of_event, values, len(self))
        total[0] = 0
        return total

    def with_callees(self, own: Int64) -> Int64:
        """For each node the sum over itself and its callees, direct and indirect."""
        return with_called(self.parent, own)


def has_frames(trace: Trace) -> bool:
    """Whether the tree begins with source frames: of events, or of samples if there is no event."""
    if not len(trace):
        return trace.stacks is not None and trace.samples is not None and len(trace.samples) > 0
    return trace.stack is not None and trace.stacks is not None and bool((trace.stack >= 0).any())


def call_tree(
    trace: Trace,
    python: bool = False,
    hidden: Callable[[Frame], bool] | None = None,
    library: Callable[[Frame], str] | None = None,
) -> CallTree:
    """The tree of `trace`: nested scopes and ops, or source frames with the ops that each called, if recorded.

    Frames for which `hidden` is true are left out; their callees become their caller's. `library` returns the library
    of a frame, "" for none: frames of one library that call each other, or have one caller, become one node.
    """
    builder = _Builder(trace, hidden or (lambda _: False), library or (lambda _: ""))
    costs, nested = averaged_costs(trace), nesting(trace)
    names = name_ids(trace)
    stands = costs.counted & ((trace.kind == OP) | (not builder.by_frames) & (trace.kind == SCOPE))
    # A kernel without an op belongs to a scope or to the call that launched it, which then has a node too.
    stands |= costs.counted & owns_kernels(trace)
    if python:
        stands |= costs.counted & (trace.kind == PYTHON) & (not builder.by_frames)
    for depth, level in enumerate(nested.levels()):
        parent = costs.parent[level]
        above = np.where(parent >= 0, builder.of_event[parent], 0)
        builder.of_event[level] = above
        if depth < MOST_LEVELS:
            in_op = (parent >= 0) & stands[parent]
            new = stands[level]
            builder.add(level[new], above[new], in_op[new], names)
    return builder.tree(stands)


class _Builder:
    """Builds the tree level by level; events of one name under one node share a node."""

    def __init__(self, trace: Trace, hidden: Callable[[Frame], bool], library: Callable[[Frame], str]) -> None:
        self.of_event = np.zeros(len(trace), np.int32)
        self.by_frames = has_frames(trace)
        self._trace = trace
        #: Parent, frame, event and number of frames of each node so far; the root has none.
        self._nodes = [np.array([[-1], [-1], [-1], [0]], np.int32)]
        self._size = 1
        self._of_stack = np.zeros(1, np.int32)
        if self.by_frames and trace.stacks is not None:
            frames = trace.stacks.frames
            self._of_stack = self._add_frames(trace.stacks, list(map(hidden, frames)), list(map(library, frames)))

    def _add_frames(self, stacks: StackTree, hidden: list[bool], library: list[str]) -> Int32:
        """Add nodes for all stacks. Returns the node of each stack, and last the root, for the empty stack."""
        nodes: dict[tuple[int, int | str], int] = {}
        frames_of: list[dict[int, None]] = [{}]
        library_of = [""]
        of_stack: list[int] = []
        for frame, parent in zip(stacks.frame.tolist(), stacks.parent.tolist(), strict=True):
            node = of_stack[parent] if parent >= 0 else 0
            if not hidden[frame]:
                if not library[frame] or library_of[node] != library[frame]:
                    node = nodes.setdefault((node, library[frame] or frame), len(nodes) + 1)
                if node == len(frames_of):
                    frames_of.append({})
                    library_of.append(library[frame])
                frames_of[node][frame] = None
            of_stack.append(node)
        parents = np.array([above for above, _ in nodes], np.int32)
        first = np.array([next(iter(frames)) for frames in frames_of[1:]], np.int32)
        self._append(parents, first, -1, np.array([len(frames) for frames in frames_of[1:]], np.int32))
        return np.array([*of_stack, 0], np.int32)

    def add(self, events: Int64, above: Int32, in_op: Bool, names: Int32) -> None:
        """Add `events` below their nodes `above`, or below their own stack where no op called them."""
        if self.by_frames and self._trace.stack is not None:
            above = np.where(in_op, above, self._of_stack[self._trace.stack[events]])
        key = above.astype(np.int64) * (len(self._trace.names) + 1) + names[events]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        self.of_event[events] = self._size + number
        self._append(above[first], -1, events[first], 0)

    def _append(self, parents: Int32, frame: Int32 | int, events: Int64 | int, frames: Int32 | int) -> None:
        self._nodes.append(np.stack(np.broadcast_arrays(parents, frame, events, frames)).astype(np.int32))
        self._size += len(parents)

    def tree(self, stands: Bool) -> CallTree:
        parent, frame, event, frames = np.concatenate(self._nodes, axis=1)
        of_event = np.where(stands, self.of_event, 0).astype(np.int32)
        return CallTree(parent, frame, event, of_event, self._of_stack, frames)
