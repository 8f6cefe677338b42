"""`Lines`: the cost of each source line, as rows, as text and as a DataFrame."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from mtprof_nb.analysis.causes.recorded_time import program_ns
from mtprof_nb.analysis.functions.sampled_lines import outside_by_line, outside_error_ns
from mtprof_nb.analysis.lines.line_costs import LineCosts, OpsOfLine, line_costs, ops_of_line
from mtprof_nb.analysis.lines.parameter_lines import ParameterCost, parameter_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.model.source_files import file_label
from mtprof_nb.model.trace import Int64, OutsideOps, SourceLine, Trace
from mtprof_nb.results.row_table import RowTable, ruled
from mtprof_nb.results.text_table import data_frame, format_memory, format_share, format_time

if TYPE_CHECKING:
    import pandas as pd

UNATTRIBUTED = "(unattributed)"
_SOURCE_WIDTH = 60
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

    @property
    def time_ns(self) -> int:
        """Time of the line's own ops, in all phases, and its time outside ops."""
        return self.self_ns + (self.outside_ns or 0)


#: The fields that identify the line: the first ones.
_LOCATION = ("file", "where", "line", "source")
_OPTIONAL = tuple(part.name for part in fields(LineRow) if part.default is None)
_COSTS = tuple(part.name for part in fields(LineRow) if part.name not in (*_LOCATION, "has_ops"))


class Lines(RowTable[LineRow]):
    """The lines of a trace, the most expensive first. Their sums equal the totals of the trace, to the nanosecond.

    Lines without ops follow those with ops. Ops whose line is unknown are the last row.
    """

    _location_keys = _LOCATION
    _cost_keys = ("self_ns", *(cost for cost in _COSTS if cost != "self_ns"), "time_ns")
    _tie_key = "time_ns"

    def __init__(self, trace: Trace) -> None:
        super().__init__(_rows(trace))
        self._trace = trace

    def __repr__(self) -> str:
        return self.table(row_limit=30)

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

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row per line, the largest `time_ns` first. Needs pandas.

        It has a column for each field of `LineRow` that was recorded, and `time_ns`, the panel's *Time*.
        """
        rows = [{**asdict(row), "time_ns": row.time_ns} for row in self.by_time()]
        frame = data_frame(rows, columns=[*_LOCATION, "time_ns", *_COSTS])
        absent = [name for name in _OPTIONAL if frame[name].isna().all()]
        return frame.drop(columns=absent)

    def by_time(self) -> list[LineRow]:
        """The rows by `time_ns`, the largest first; ops without a line come last."""
        return self.sorted_rows(self._rows, "time_ns")

    def table(self, sort_by: str = "time_ns", row_limit: int | None = 100) -> str:
        """The rows as aligned text, the largest `sort_by` first. A negative `row_limit`, or None, shows all rows."""
        rows, left_out = self._shown(sort_by, row_limit)
        columns = _table_columns(self._rows, program_ns(self._trace))
        cells = [[title for title, _ in columns], *([text(row) for _, text in columns] for row in rows)]
        total_ns, count = sum(row.self_ns for row in self._rows), sum(row.count for row in self._rows)
        ends = [*left_out, f"Total: {format_time(total_ns / 1e3)}  Count: {count}"]
        note = [f"Note: {shown(self.note, LONGEST_SENTENCE)}"] if self.note else []
        return "\n".join([*ruled(cells), *ends, *note]) + "\n"


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

    def device(column: Int64 | None) -> int | None:
        return None if column is None else cost(column)

    def nbytes(column: Int64 | None) -> int | None:
        is_missing = index is not None and costs.lacks_memory[index]
        return None if column is None or is_missing else cost(column)

    phases = [cost(column) for column in (costs.forward_ns, costs.backward_ns, costs.optimizer_ns, costs.other_ns)]
    return LineRow(
        file=line.file if line else "",
        where=file_label(trace, line.file) if line else "",
        line=line.line if line else 0,
        source=(source_of(trace, line) or _function_at(trace, line)) if line else UNATTRIBUTED,
        forward_ns=phases[0],
        backward_ns=phases[1],
        optimizer_ns=phases[2],
        other_ns=phases[3],
        self_ns=sum(phases),
        total_ns=cost(costs.total_ns) + outside.total_ns,
        count=cost(costs.count),
        device_ns=device(costs.device_ns),
        device_forward_ns=device(costs.device_forward_ns),
        device_backward_ns=device(costs.device_backward_ns),
        device_optimizer_ns=device(costs.device_optimizer_ns),
        memory_bytes=nbytes(costs.memory_bytes),
        allocated_bytes=nbytes(costs.allocated_bytes),
        outside_ns=None if outside_by_line(trace) is None else outside.own_ns,
        outside_error_ns=outside_error_ns(trace, line) if line else None,
        has_ops=any(map(cost, (costs.count, costs.total_ns))) or bool(device(costs.device_ns)),
    )


def source_of(trace: Trace, line: SourceLine) -> str:
    """The text of a line without its indentation; "" where it is not available."""
    lines = source_lines(trace, line.file)
    return lines[line.line - 1].strip() if 0 < line.line <= len(lines) else ""


@once_a_trace
def _functions(trace: Trace) -> dict[SourceLine, str]:
    """The function of each line in the recorded stacks."""
    frames = () if trace.stacks is None else trace.stacks.frames
    return {SourceLine(frame.file, frame.line): frame.function for frame in frames}


def _function_at(trace: Trace, line: SourceLine) -> str:
    """`in train`, for a line whose text is not available; "" where its function is not known either."""
    function = _functions(trace).get(line)
    return f"in {function}" if function else ""


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


def _table_columns(rows: list[LineRow], whole_ns: int) -> list[tuple[str, Callable[[LineRow], str]]]:
    """Title and text of each column of a table."""
    has_device = any(row.device_ns is not None for row in rows)
    columns: list[tuple[str, Callable[[LineRow], str], bool]] = [
        ("Line", lambda row: f"{row.where}:{row.line}" if row.file else "", True),
        ("Source", lambda row: _cut(row.source), True),
        ("Share", lambda row: format_share(row.time_ns, whole_ns), True),
        ("Self", lambda row: _time(row.self_ns), True),
        ("Forward", lambda row: _time(row.forward_ns), True),
        ("Backward", lambda row: _time(row.backward_ns), True),
        ("Optimizer", lambda row: _time(row.optimizer_ns), True),
        ("Other", lambda row: _time(row.other_ns), any(row.other_ns for row in rows)),
        ("Outside ops", lambda row: _time(row.outside_ns), any(row.outside_ns is not None for row in rows)),
        ("+/-", lambda row: _error(row), any(row.outside_error_ns for row in rows)),
        ("Total", lambda row: _time(row.total_ns), True),
        ("# of Ops", lambda row: str(row.count), True),
        ("Device", lambda row: _time(row.device_ns), has_device),
        ("Device fwd", lambda row: _time(row.device_forward_ns), has_device),
        ("Device bwd", lambda row: _time(row.device_backward_ns), has_device),
        ("Device opt", lambda row: _time(row.device_optimizer_ns), has_device),
        ("Memory", lambda row: _memory(row.memory_bytes), any(row.memory_bytes is not None for row in rows)),
        ("Allocated", lambda row: _memory(row.allocated_bytes), any(row.allocated_bytes is not None for row in rows)),
    ]
    return [(title, text) for title, text, is_there in columns if is_there]


def _cut(source: str) -> str:
    return source if len(source) <= _SOURCE_WIDTH else f"{source[: _SOURCE_WIDTH - 3]}..."


def _time(ns: int | None) -> str:
    return format_time((ns or 0) / 1e3)


def _error(row: LineRow) -> str:
    return "" if row.outside_error_ns == 0 else "?" if row.outside_error_ns is None else _time(row.outside_error_ns)


def _memory(nbytes: int | None) -> str:
    return "" if nbytes is None else format_memory(nbytes)
