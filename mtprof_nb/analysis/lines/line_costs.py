"""Costs of each source line by phase, self and total, and of the optimizer for each parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.groups import number_combinations, sums
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.user_lines import chains_of_stacks
from mtprof_nb.analysis.memory.memory_curve import allocated_bytes
from mtprof_nb.analysis.memory.missing_memory import lacks_memory
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.stacks.stack_metrics import with_called
from mtprof_nb.model.stack_tree import has_above
from mtprof_nb.model.trace import (
    BACKWARD,
    COMPILING,
    FORWARD,
    OP,
    OPTIMIZER,
    OTHER,
    Bool,
    Int32,
    Int64,
    SourceLine,
    Trace,
)


@dataclass(frozen=True, eq=False)
class LineCosts:
    """One row a line; the last row, without a line, has the ops and kernels whose line is not known.

    The first six columns, and the bytes, sum up exactly to the trace's totals over all counted ops, and the device
    time to that of all kernels, copies, sets and collectives. Bytes that a line allocated outside ops count as well.
    """

    lines: tuple[SourceLine, ...]
    forward_ns: Int64
    backward_ns: Int64
    optimizer_ns: Int64
    other_ns: Int64
    compiling_ns: Int64
    #: Counted ops, nested ones too.
    count: Int64
    #: With the lines that the line called; so the rows overlap.
    total_ns: Int64
    #: Time of the kernels that the line launched, in all phases and in three of them; None where none was recorded.
    device_ns: Int64 | None
    device_forward_ns: Int64 | None
    device_backward_ns: Int64 | None
    device_optimizer_ns: Int64 | None
    #: Allocated minus released; None where no memory was recorded.
    memory_bytes: Int64 | None
    #: Allocated, released or not; None without allocator records.
    allocated_bytes: Int64 | None
    #: Whether an op of the line ran on a thread without recorded memory.
    lacks_memory: Bool


@once_a_trace
def line_costs(trace: Trace) -> LineCosts:
    is_op = counted_ops(trace)
    costs, caused = op_costs(trace), attribution(trace)
    size = len(caused.chains.lines) + 1
    line = np.where(caused.line >= 0, caused.line, size - 1)

    def summed(values: Int64, phase: int | None = None) -> Int64:
        chosen = is_op if phase is None else is_op & (trace.phase == phase)
        return sums(line[chosen], values[chosen], size)

    def divided(phase: int) -> Int64:
        """Self time, of fused kernels among their lines."""
        moved = _moved(trace, is_op & (trace.phase == phase), line, costs.self_ns, size)
        return summed(costs.self_ns, phase) + moved

    return LineCosts(
        lines=caused.chains.lines,
        forward_ns=divided(FORWARD),
        backward_ns=divided(BACKWARD),
        optimizer_ns=divided(OPTIMIZER),
        other_ns=divided(OTHER),
        compiling_ns=summed(costs.self_ns, COMPILING),
        count=summed((trace.phase != COMPILING).astype(np.int64)),
        total_ns=_with_callees(trace, costs.self_ns, size),
        device_ns=_device(trace, line, size),
        device_forward_ns=_device(trace, line, size, FORWARD),
        device_backward_ns=_device(trace, line, size, BACKWARD),
        device_optimizer_ns=_device(trace, line, size, OPTIMIZER),
        memory_bytes=_memory(trace, line, size),
        allocated_bytes=_allocated(trace, line, size),
        lacks_memory=np.isin(np.arange(size), line[is_op & lacks_memory(trace)]),
    )


def _device(trace: Trace, line: Int32 | Int64, size: int, phase: int | None = None) -> Int64 | None:
    """The time on devices of each line's kernels; a kernel has the phase of its owner."""
    if not trace.on_device.any():
        return None
    rows = np.flatnonzero(trace.is_device_work)
    if phase is not None:
        owner = kernel_owners(trace)[rows]
        rows = rows[trace.phase[np.where(owner >= 0, owner, rows)] == phase]
    moved = _moved(trace, np.isin(np.arange(len(trace)), rows), line, trace.duration_ns, size)
    return sums(line[rows], trace.duration_ns[rows], size) + moved


def _moved(trace: Trace, chosen: Bool, line: Int32 | Int64, ns: Int64, size: int) -> Int64:
    """Changes of sums by line where the time of fused kernels is divided among their lines."""
    caused = attribution(trace)
    to = caused.shared_line[chosen[caused.shared.event]]
    return caused.shared.of(chosen).moved(line, np.where(to >= 0, to, size - 1), ns, size)


def _memory(trace: Trace, line: Int32 | Int64, size: int) -> Int64 | None:
    """The bytes of each line's own ops. A record counts for the op of its own thread."""
    records, changes = trace.allocations, op_costs(trace).memory
    is_op = trace.kind == OP
    if records is not None:
        rows = np.flatnonzero(records.event >= 0)
        rows = rows[is_op[records.event[rows]]]
        return sums(line[records.event[rows]], records.nbytes[rows], size) + _outside_ops(trace, size)
    if changes is None:
        return None
    counted = counted_ops(trace)
    return sums(line[counted], (changes.self_cpu + changes.self_device)[counted], size)


def _allocated(trace: Trace, line: Int32 | Int64, size: int) -> Int64 | None:
    own = allocated_bytes(trace)
    is_op = trace.kind == OP
    return None if own is None else sums(line[is_op], own[is_op], size) + _outside_ops(trace, size)


def _outside_ops(trace: Trace, size: int) -> Int64:
    """The bytes that each line allocated outside ops, such as those of a storage that Python code made."""
    line, records = attribution(trace).allocation_line, trace.allocations
    if records is None:
        return np.zeros(size, np.int64)
    rows = np.flatnonzero((line >= 0) & (records.nbytes > 0))
    return sums(line[rows], records.nbytes[rows], size)


def _with_callees(trace: Trace, self_ns: Int64, size: int) -> Int64:
    """Add the time of each chain to every line on it, once also for a line that called itself."""
    caused, is_op = attribution(trace), counted_ops(trace)
    none = len(caused.chains)
    chain = np.where(caused.chain >= 0, caused.chain, none)
    of_chain = sums(chain[is_op], self_ns[is_op], none + 1)
    shared = caused.shared.of(is_op)
    to = np.where(shared.chain >= 0, shared.chain, none)
    of_chain += shared.moved(chain, to, self_ns, none + 1)
    total = np.zeros(size, np.int64)
    total[-1] = of_chain[none]
    parents, lines = caused.chains.parents, np.array(caused.chains.line_of, np.int32)
    with_callees = with_called(np.array(parents, np.int32), of_chain[:none])
    is_outermost = ~np.array(has_above(parents, caused.chains.line_of), np.bool_)
    total[:-1] = sums(lines[is_outermost], with_callees[is_outermost], size - 1)
    return total


@dataclass(frozen=True)
class OpsOfLine:
    """Ops of one name and phase on one line."""

    name: str
    phase: int
    count: int
    self_ns: int
    #: Position of the first such op in the trace.
    event: int
    #: The ops of the line that a fused kernel computes, in words.
    fused: str = ""


def ops_of_line(trace: Trace, line: SourceLine | None) -> list[OpsOfLine]:
    """Ops of `line`, the longest first; for None, ops without a line."""
    caused = attribution(trace)
    lines = caused.chains.lines
    if line is not None and line not in lines:
        return []
    number = lines.index(line) if line is not None else -1
    rows, own_ns = _self_times(trace, number)
    names, phases = trace.name[rows], trace.phase[rows]
    group, first, size = number_combinations([names, phases])
    count, self_ns = np.bincount(group, minlength=size), sums(group, own_ns, size)
    ops = [
        OpsOfLine(
            trace.names[names[row]],
            int(phases[row]),
            int(count[index]),
            int(self_ns[index]),
            int(rows[row]),
            _fused(trace, int(rows[row]), number),
        )
        for index, row in enumerate(first.tolist())
    ]
    return sorted(ops, key=lambda op: (-op.self_ns, op.name, op.phase))


def _fused(trace: Trace, event: int, line: int) -> str:
    """The ops of a line that a kernel of compiled code computes, "" for all other events."""
    calls = trace.compiled
    if calls is None or trace.stack is None:
        return ""
    rows = np.flatnonzero(calls.call == trace.stack[event])
    chains = attribution(trace).chains
    stacks = chains_of_stacks(trace, chains, calls.stack[rows].astype(np.int64)).tolist()
    names = [trace.names[calls.ops[row]] for row in rows.tolist()]
    own = [name for name, chain in zip(names, stacks, strict=True) if chains.line_of[chain] == line]
    return ", ".join(name for name in own if name not in trace.names[trace.name[event]].split("::"))


def _self_times(trace: Trace, line: int) -> tuple[Int64, Int64]:
    """The ops of a line by its number, and their self times; of fused kernels its share."""
    caused, counted, self_ns = attribution(trace), counted_ops(trace), op_costs(trace).self_ns
    shared = caused.shared
    alone = (caused.line == line) & counted
    alone[shared.event] = False
    rows = (caused.shared_line == line) & counted[shared.event]
    own, parts = np.flatnonzero(alone), shared.parts(self_ns)[rows]
    return np.append(own, shared.event[rows]), np.append(self_ns[own], parts)


@dataclass(frozen=True)
class ParameterCost:
    """Cost of the optimizer's ops for one parameter; `parameter` is "" for ops whose parameter is unknown."""

    parameter: str
    #: Path of the module that holds the parameter, "" if unknown.
    module: str
    self_ns: int
    count: int


def parameter_costs(trace: Trace, among: Bool | None = None) -> list[ParameterCost]:
    """Costs of the optimizer by parameter, the largest first; only of events in `among`, if given.

    Ops without a known parameter come last; without recorded shapes, these are all.
    """
    rows = np.flatnonzero((trace.phase == OPTIMIZER) & counted_ops(trace) & (True if among is None else among))
    known = np.full(len(trace), -1, np.int32) if trace.parameter is None else trace.parameter
    names = (*trace.parameters, "")
    self_ns = sums(known[rows], op_costs(trace).self_ns[rows], len(names))
    count = sums(known[rows], np.ones_like(rows), len(names))
    costs = [
        ParameterCost(name, name.rpartition(".")[0], int(self_ns[index]), int(count[index]))
        for index, name in enumerate(names)
        if count[index]
    ]
    return sorted(costs, key=lambda cost: (cost.parameter == "", -cost.self_ns, cost.parameter))
