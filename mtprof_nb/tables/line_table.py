"""`Lines`: the cost of each source line."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mtprof_nb.analysis import units
from mtprof_nb.analysis.functions.sampled_lines import outside_by_line, outside_error_ns
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import (
    LineCosts,
    OpsOfLine,
    ParameterCost,
    line_costs,
    ops_of_line,
    parameter_costs,
)
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.model.source_files import file_label, line_label
from mtprof_nb.model.trace import PHASES, Int64, OutsideOps, SourceLine, Trace
from mtprof_nb.tables.row_table import SourceTable, facts_of
from mtprof_nb.tables.table import Table, TableColumn, table_of

UNATTRIBUTED = "(unattributed)"
_NO_TIME = OutsideOps(0, 0)
_NOTHING_RECORDED = "no lines were recorded: use profile(with_stack=True), or %%mtprofile in a notebook"


@dataclass(frozen=True)
class LineRow:
    """The cost of one source line. `self_ns` is the sum of the four phases.

    `total_ns` also includes the lines that the line called and, if known, the time outside ops.
    """

    #: The file, or the name under which a cell was compiled; "" for ops that belong to no line.
    file: str
    #: The file as the panel shows it: `Cell [3]`, or its name.
    where: str
    line: int
    source: str
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    compiling_ns: int
    self_ns: int
    total_ns: int
    #: Ops that ran on the line, over all its executions.
    count: int
    #: Time of the kernels that the line launched, in all phases and in three of them; None if no kernel was recorded.
    device_ns: int | None = None
    device_forward_ns: int | None = None
    device_backward_ns: int | None = None
    device_optimizer_ns: int | None = None
    #: Allocated minus released; None if memory was not recorded, or not for the thread of the line.
    memory_bytes: int | None = None
    #: Allocated, including what was released later; None as above, and if the allocator reports no allocations.
    allocated_bytes: int | None = None
    #: Time during which the line ran and no op ran: Python code, waiting, input. Measured for the lines of a cell with
    #: `%%mtprofile` if all its ops were recorded; with samples of Python stacks, an estimate for all other lines; else
    #: None.
    outside_ns: int | None = None
    #: An estimated `outside_ns` is wrong by more than this in 5 of 100 recordings; 0 where it was measured, None where
    #: the error is not known.
    outside_error_ns: int | None = None
    #: Whether an op ran on the line, or on one that it called.
    has_ops: bool = True
    #: Lines with which it shares fused kernels, so that its part of their time is an estimate.
    fused_with: str = ""

    @property
    def time_ns(self) -> int:
        """Time of the line's own ops, in all phases, and its time outside ops."""
        return self.self_ns + (self.outside_ns or 0)


#: The fields that identify the line: the first ones.
_LOCATION = ("file", "where", "line", "source")
_OPTIONAL = tuple(part.name for part in fields(LineRow) if part.default is None)
_NO_COSTS = (*_LOCATION, "has_ops", "fused_with")
_COSTS = tuple(part.name for part in fields(LineRow) if part.name not in _NO_COSTS)
#: Columns of `LineCosts` that are None if they were not recorded.
_RECORDED = tuple(name for name in _OPTIONAL if not name.startswith("outside"))

_COLUMNS = (
    TableColumn("where", "Line", "code", "the file or cell, and the line"),
    TableColumn("time_ns", "Time", "time", "time of its ops in all phases, and its time outside ops"),
    TableColumn("share", "Share", "share", "time as a share of the program's time", "time_ns"),
    *(TableColumn(f"{phase}_ns", phase.capitalize(), "time", f"time of its ops in phase {phase}") for phase in PHASES),
    TableColumn("outside_ns", "Outside ops", "time", "time in which it ran and no op ran"),
    TableColumn("outside_error_ns", "+/-", "time", "an estimate is wrong by more in 5 of 100 recordings"),
    TableColumn("total_ns", "Total", "time", "time of the line and of the lines that it called"),
    TableColumn("count", "Ops", "count", "ops that ran on it"),
    TableColumn("device_ns", "Device", "time", "time of the kernels that it launched"),
    TableColumn("device_forward_ns", "Device fwd", "time", "of these, in the forward pass"),
    TableColumn("device_backward_ns", "Device bwd", "time", "of these, in the backward pass"),
    TableColumn("device_optimizer_ns", "Device opt", "time", "of these, in the optimizer"),
    TableColumn("memory_bytes", "Memory", "bytes", "bytes that its ops allocated, less those they released"),
    TableColumn("allocated_bytes", "Allocated", "bytes", "bytes that it allocated, released or not"),
    TableColumn("fused_with", "Fused with", "words", "lines that share its kernels, by estimate"),
    TableColumn("source", "Source", "code", "the text of the line"),
)
_PHASES = tuple(f"{phase}_ns" for phase in PHASES)
#: Columns that are left out if they are zero for all lines.
_IF_SPENT = (*_PHASES, "outside_ns", "outside_error_ns", "fused_with")
_BRIEF = (
    *("where", "time_ns", "share", *_PHASES, "outside_ns"),
    *("total_ns", "count", "device_ns", "fused_with", "source"),
)


class Lines(SourceTable[LineRow]):
    """The lines of a trace, the largest `time_ns` first. Their sums equal the totals of the trace.

    Ops whose line is unknown are the last row.
    """

    _nothing = _NOTHING_RECORDED
    _location_keys = _LOCATION
    _cost_keys = ("time_ns", *_COSTS)
    _sort_key = _tie_key = "time_ns"
    _facts = (*_LOCATION, "time_ns", *_COSTS, "fused_with")

    def __init__(self, trace: Trace) -> None:
        super().__init__(_rows(trace))
        self._trace = trace

    @property
    def note(self) -> str:
        """Why lines are missing or inexact, and which part of the run they are of; "" if they are complete."""
        trace, note = self._trace, self._trace.lines_note
        if self._rows and trace.stack is None and trace.line is None and trace.line_stack is None:
            note = note or _NOTHING_RECORDED
        return " ".join(filter(None, (*coverage_notes(trace), note)))

    def ops(self, row: LineRow) -> list[OpsOfLine]:
        """The ops of one row by name and phase, the most expensive first."""
        return ops_of_line(self._trace, SourceLine(row.file, row.line) if row.file else None)

    def parameters(self) -> list[ParameterCost]:
        """Cost of the optimizer for each parameter, the most expensive first. Needs `record_shapes`."""
        return parameter_costs(self._trace)

    def facts(self) -> Table:
        """The data: a column for each field of `LineRow` that was recorded."""
        absent = {name for name in _OPTIONAL if all(getattr(row, name) is None for row in self._rows)}
        if not any(row.fused_with for row in self._rows):
            absent.add("fused_with")
        return facts_of(self._rows, (name for name in self._facts if name not in absent))

    def brief(self) -> Table:
        """All lines with few columns, as a page shows them."""
        return replace(self.content().only(*_BRIEF), notes=(f"Note: {self.note}",) if self.note else ())

    def phases(self) -> list[int]:
        """The phases that any line spent time in."""
        return [phase for phase, key in enumerate(_PHASES) if any(getattr(row, key) for row in self._rows)]

    def _content(self, rows: list[LineRow]) -> Table:
        whole_ns = program_ns(self._trace)
        hidden = {key for key in _IF_SPENT if not any(getattr(row, key) for row in rows)}
        if len(self.phases()) < 2:
            hidden.update(_PHASES)
        columns = [column for column in _COLUMNS if column.key not in hidden]
        if outside_by_line(self._trace) is None:
            columns = [column._replace(title="Self") if column.key == "time_ns" else column for column in columns]

        def made(row: LineRow) -> dict[str, Any]:
            return {
                "where": f"{row.where}:{row.line}" if row.file else row.source,
                "share": (row.time_ns, whole_ns),
                "source": row.source if row.file else "",
                "outside_error_ns": _error(row),
                "fused_with": f"≈ {row.fused_with}" if row.fused_with else "",
            }

        time_ns, count = sum(row.time_ns for row in rows), sum(row.count for row in rows)
        whole = f"All lines: {units.duration(time_ns)}, {units.plural(count, 'op')}"
        notes = (*([whole] if rows else []), *([f"Note: {self.note}"] if self.note else []))
        return table_of(columns, rows, made, notes=notes)


def _error(row: LineRow) -> int | str | None:
    """The error of an estimated time outside ops, "?" where it is not known; None where there is nothing to err."""
    if not row.outside_ns:
        return None
    return "?" if row.outside_error_ns is None else row.outside_error_ns or None


@once_a_trace
def _rows(trace: Trace) -> list[LineRow]:
    costs = line_costs(trace)
    outside = dict(outside_by_line(trace) or {})
    lines = enumerate((*costs.lines, None))
    ran = (costs.count > 0) | (costs.total_ns > 0)
    for cost in (costs.device_ns, costs.allocated_bytes):
        if cost is not None:
            ran |= cost > 0
    with_ops = [(index, line) for index, line in lines if ran[index]]
    times = [outside.pop(line, _NO_TIME) if line else _NO_TIME for _, line in with_ops]
    rows = [_row(trace, costs, *where, time) for where, time in zip(with_ops, times, strict=True)]
    without = [_row(trace, costs, None, line, time) for line, time in outside.items() if time.total_ns]
    # Marks after the last line of a cell are not lines of the user.
    return rows + [row for row in without if row.source]


def _row(trace: Trace, costs: LineCosts, index: int | None, line: SourceLine | None, outside: OutsideOps) -> LineRow:
    """The row of `line`, with the costs at `index`; None for a line without any."""

    def cost(column: Int64) -> int:
        return int(column[index]) if index is not None else 0

    def if_recorded(name: str) -> int | None:
        column = getattr(costs, name)
        lacks_it = name.endswith("_bytes") and index is not None and costs.lacks_memory[index]
        return None if column is None or lacks_it else cost(column)

    phases: dict[str, Any] = {name: cost(getattr(costs, name)) for name in _PHASES}
    recorded: dict[str, Any] = {name: if_recorded(name) for name in _RECORDED}
    return LineRow(
        file=line.file if line else "",
        where=file_label(trace, line.file) if line else "",
        line=line.line if line else 0,
        source=_source(trace, line) if line else UNATTRIBUTED,
        **phases,
        self_ns=sum(phases.values()),
        total_ns=cost(costs.total_ns) + outside.total_ns,
        count=cost(costs.count),
        **recorded,
        outside_ns=None if outside_by_line(trace) is None else outside.own_ns,
        outside_error_ns=outside_error_ns(trace, line) if line else None,
        has_ops=any((cost(costs.count), cost(costs.total_ns), recorded["device_ns"])),
        fused_with=_fused_with(trace, line) if line else "",
    )


@once_a_trace
def _fused_lines(trace: Trace) -> dict[SourceLine, list[SourceLine]]:
    """For each line that shares fused kernels, the lines that it shares them with."""
    lines, found = attribution(trace).lines, attribution(trace).fused_lines.items()
    return {lines[line]: sorted(lines[one] for one in others) for line, others in found}


def _fused_with(trace: Trace, line: SourceLine) -> str:
    """`26, 31`, with the file for lines of others."""
    others = _fused_lines(trace).get(line, ())
    labels = [(one.file, str(one.line), line_label(trace, *one)) for one in others]
    return ", ".join(number if file == line.file else label for file, number, label in labels)


def text_of_line(lines: Sequence[str], number: int) -> str:
    """The line of this number, from 1 on, without its indentation; "" where it is not available."""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


@once_a_trace
def _functions(trace: Trace) -> dict[SourceLine, str]:
    """The function of each line in the recorded stacks."""
    frames = () if trace.stacks is None else trace.stacks.frames
    return {SourceLine(frame.file, frame.line): frame.function for frame in frames}


def _source(trace: Trace, line: SourceLine) -> str:
    """The text of a line, or its function, as `in train`; "" if neither is known."""
    text, function = text_of_line(source_lines(trace, line.file), line.line), _functions(trace).get(line)
    return text or (f"in {function}" if function else "")


def source_lines(trace: Trace, file: str) -> list[str]:
    """The lines of a cell or file; empty where the text is not available."""
    text = trace.sources.get(file)
    if text is not None:
        return [_MAGIC.sub(_as_typed, line) for line in text.split("\n")]
    # A recording that was loaded may name any file of this machine: nothing but Python source is shown.
    if not file.endswith(".py") and not file.startswith("<"):
        return []
    try:
        return [line.rstrip("\n") for line in linecache.getlines(file)]
    except ValueError:  # no name that a file could have
        return []


#: The call that IPython puts in place of a magic or command, if its text needs no escape.
_MAGIC = re.compile(
    r"get_ipython\(\)\.(?:run_(?P<kind>line|cell)_magic\('(?P<name>\w+)', |(?P<system>system)\()"
    r"'(?P<text>[^'\\]*)'(?:, None)?\)"
)


def _as_typed(call: re.Match[str]) -> str:
    if call["system"]:
        return f"!{call['text']}"
    return f"{'%' if call['kind'] == 'line' else '%%'}{call['name']} {call['text']}".rstrip()
