"""Which line caused each event: the one that ran it, or, in the backward pass, the one that asked for a gradient.

- An event of the backward pass belongs to the lines of the forward op that made its autograd node.
- `AccumulateGrad` has no forward op. The engine runs it as soon as its gradient is complete, right after the node
  that completed it, so it belongs to that node's lines: of a parameter used on several lines, to the line whose
  gradient came last. Where several threads of the engine feed one parameter, it is the last node of its own thread.
- Python code that runs inside the backward pass (a custom `backward`, a hook, a checkpoint's second forward) has
  lines of its own; they count as called from the lines of the node that ran them, in place of the lines that called
  `backward()`. A hook that records no autograd nodes marks the ops that Python code ran.
- What has no forward op (its graph is older than the recording) stays with the line that called `backward()`.
- A kernel belongs to the lines of its owner, mostly the op that launched it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.lines.user_lines import Chains, callers_of_engine, chains_of_allocations, chains_of_events
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import BACKWARD, ENGINE_PREFIX, Bool, Int32, Int64, SourceLine, Trace

_ACCUMULATE = "AccumulateGrad"
_UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class Attribution:
    """The chain of lines that caused each event and each allocation outside ops (-1: none is known), and the chains."""

    chain: Int32
    allocation_chain: Int32
    chains: Chains

    @cached_property
    def lines(self) -> tuple[SourceLine, ...]:
        return self.chains.lines

    @cached_property
    def line(self) -> Int32:
        """The innermost line of each event, as a position in `lines`."""
        return self._innermost[self.chain]

    @cached_property
    def allocation_line(self) -> Int32:
        """The innermost line of each allocation outside ops."""
        return self._innermost[self.allocation_chain]

    @cached_property
    def _innermost(self) -> Int32:
        return np.array([*self.chains.line_of, -1], np.int32)


@once_a_trace
def attribution(trace: Trace) -> Attribution:
    chains = Chains()
    return Attribution(_Attributor(trace, chains).chain(), chains_of_allocations(trace, chains), chains)


class _Attributor:
    def __init__(self, trace: Trace, chains: Chains) -> None:
        self._trace = trace
        self._chains = chains
        self._own = chains_of_events(trace, chains)
        self._backward = trace.phase == BACKWARD
        self._parent = nesting(trace).parent
        self._node = self._autograd_nodes()

    def chain(self) -> Int32:
        """For each event, the chain of the event whose own lines it uses."""
        refers_to, around = self._references()
        chain = np.where(refers_to < 0, self._own, np.int32(_UNKNOWN))
        # Python code inside a node has lines of its own on top of the node's.
        is_python = (refers_to >= 0) & (refers_to == around) & (self._own != self._own[around])
        without_node = self._in_python_without_node(refers_to, around)
        # The last op of the thread that autograd's engine itself ran takes the role of the node.
        by_engine = self._backward & ~without_node
        around[without_node] = self._last_before(by_engine, without_node, self._trace.track)
        is_python |= without_node
        engine = self._callers_of_engine(np.flatnonzero(is_python), around)
        waiting = np.flatnonzero(refers_to >= 0)
        while len(waiting):
            known = chain[refers_to[waiting]] != _UNKNOWN
            ready, waiting = waiting[known], waiting[~known]
            if not len(ready):
                chain[waiting] = self._own[waiting]
                break
            chain[ready] = chain[refers_to[ready]]
            self._move(chain, ready[is_python[ready]], engine)
        return chain

    def _callers_of_engine(self, rows: Int64, around: Int32) -> Int32:
        """For `rows`, the chain that called the engine: from their stacks, or else the chain of the event around."""
        callers = np.where(around >= 0, self._own[around], np.int32(-1))
        known = callers_of_engine(self._trace, self._chains, self._own, rows)
        callers[rows] = np.where(known >= 0, known, callers[rows])
        return callers

    def _move(self, chain: Int32, rows: Int64, engine: Int32) -> None:
        keys = np.stack([self._own[rows], engine[rows], chain[rows]])
        distinct, position = np.unique(keys, axis=1, return_inverse=True)
        moved = [self._chains.moved(*column) for column in distinct.T.tolist()]
        chain[rows] = np.array(moved, np.int32)[position.ravel()] if moved else ()

    def _autograd_nodes(self) -> Int32:
        """For each event of the backward pass the outermost event of its autograd node, which shares its forward op."""
        trace, node = self._trace, np.arange(len(self._trace), dtype=np.int32)
        for level in nesting(trace).levels()[1:]:
            outer = self._parent[level]
            same = self._backward[level] & self._backward[outer] & (trace.forward[level] == trace.forward[outer])
            node[level[same]] = node[outer[same]]
        return node

    def _references(self) -> tuple[Int32, Int32]:
        """The event whose lines each event takes, -1 for its own; and the event of the backward pass around it."""
        trace = self._trace
        events = np.arange(len(trace), dtype=np.int32)
        is_node = self._backward & (self._node == events)
        around = np.where(self._backward & ~is_node, self._node, np.int32(-1))
        in_node = is_node & (self._parent >= 0)
        in_node[in_node] = self._backward[self._parent[in_node]]
        around[in_node] = self._parent[in_node]
        refers_to = around.copy()
        linked = is_node & (trace.forward >= 0)
        refers_to[linked] = trace.forward[linked]
        evaluated = self._evaluated(np.flatnonzero(linked & in_node))
        refers_to[self._parent[evaluated]] = evaluated
        accumulates = is_node & ~linked & trace.where_name(lambda name: _ACCUMULATE in name)
        previous = self._last_before(is_node & ~accumulates, accumulates, self._parent, trace.track)
        refers_to[accumulates] = np.where(previous >= 0, previous, refers_to[accumulates])
        owner = kernel_owners(trace)
        refers_to[owner >= 0] = owner[owner >= 0]
        return refers_to, around

    def _in_python_without_node(self, refers_to: Int32, around: Int32) -> Bool:
        """Ops that Python code ran in the backward pass, where the recording has no event of the autograd node."""
        if self._trace.is_python_backward is None:
            return np.zeros(len(self._trace), np.bool_)
        in_python: Bool = self._trace.is_python_backward & (refers_to >= 0) & (around < 0) & (self._own >= 0)
        return in_python

    def _evaluated(self, nodes: Int64) -> Int64:
        """Positions among `nodes` that the engine evaluates in an event around them which has no forward op of its own.

        Where a tensor has hooks, that event lacks the sequence number.
        """
        names, outer = self._trace.names, self._parent[nodes]
        position = {name: index for index, name in enumerate(names)}
        inside = np.array([position.get(name.removeprefix(ENGINE_PREFIX), -1) for name in names] or [-1], np.int32)
        is_evaluated = inside[self._trace.name[outer]] == self._trace.name[nodes]
        evaluated: Int64 = nodes[is_evaluated & (self._trace.forward[outer] < 0)]
        return evaluated

    def _last_before(self, candidates: Bool, asking: Bool, *keys: Int32) -> Int32:
        """For each event of `asking` the last of `candidates` that began before it and agrees with it in all `keys`."""
        if not asking.any():
            return np.empty(0, np.int32)
        rows = np.flatnonzero(candidates | asking)
        columns: list[Int32 | Int64] = [rows, *(key[rows] for key in keys)]
        order = rows[np.lexsort(columns)]
        position = np.maximum.accumulate(np.where(candidates[order], np.arange(len(order)), -1))
        before = np.where(position >= 0, order[position], -1)
        for key in keys:
            before[key[before] != key[order]] = -1
        last = np.full(len(self._trace), -1, np.int32)
        last[order] = before
        return last[asking]


def source_location_at(trace: Trace, line: int) -> str:
    """The source location of a line, by its position in `Attribution.lines`; "" for -1."""
    return source_location(trace, *attribution(trace).lines[line]) if line >= 0 else ""
