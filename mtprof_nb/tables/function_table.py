"""`Functions`: where the time of the program went, by Python function."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any

from mtprof_nb.analysis import units
from mtprof_nb.analysis.functions.function_costs import function_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.python_calls import count_of_calls
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import Frame, Trace
from mtprof_nb.tables.line_table import source_lines
from mtprof_nb.tables.row_table import SourceTable
from mtprof_nb.tables.table import Table, TableColumn, table_of

UNKNOWN = "(unknown)"


@dataclass(frozen=True)
class FunctionRow:
    """The time of one Python function, summed over threads. `own_ns` is the sum of the three parts that follow it.

    Times in Python code and in waiting are estimates from samples, scaled to the measured time between ops. Times in
    ops are exact if stacks were recorded, and estimates otherwise.
    """

    #: The file, or the name under which a cell was compiled; "" for time of which no function is known.
    file: str
    #: Where the function begins; the line that was running where its source is not available.
    line: int
    function: str
    #: Time in the function itself.
    own_ns: int
    #: In ops that the function itself called.
    ops_ns: int
    #: In Python code of the function, and in C code that is no op.
    python_ns: int
    #: Asleep: `time.sleep`, locks, input, or the GIL.
    waiting_ns: int
    #: Time while the function was running, with everything that it called.
    total_ns: int
    #: The estimated part of `own_ns` is wrong by more than this in 5 of 100 recordings; None where it is not known.
    error_ns: int | None
    #: Samples in which the function itself was running.
    samples: int
    #: How often it was called; None unless hook kineto recorded Python calls, as it does for stacks.
    calls: int | None = None

    @property
    def outside_ns(self) -> int:
        """Time in the function itself outside ops: in Python code and in waiting."""
        return self.python_ns + self.waiting_ns


_COLUMNS = (
    TableColumn("function", "Function", "code", "its name"),
    TableColumn("where", "Where", "code", "where it begins"),
    TableColumn("share", "Own %", "share", "own time as a share of the time of all threads", "own_ns"),
    TableColumn("own_ns", "Own", "time", "time in the function itself"),
    TableColumn("error_ns", "+/-", "time", "its own time is wrong by more than this in 5 of 100 recordings"),
    TableColumn("ops_ns", "Ops", "time", "in ops that it called itself"),
    TableColumn("python_ns", "Python", "time", "in its Python code, and in C code that is no op"),
    TableColumn("waiting_ns", "Waiting", "time", "asleep: time.sleep, locks, input, or the GIL"),
    TableColumn("total_ns", "Total", "time", "time while it was running, with everything that it called"),
    TableColumn("calls", "Calls", "count", "how often it was called"),
)


class Functions(SourceTable[FunctionRow]):
    """The functions of a trace, the largest `own_ns` first. Their `own_ns` sum up to the time of all threads.

    Empty without samples, which `profile(with_python=True)` takes. Time of which no function is known is the last row.
    """

    _nothing = "Python's time was not recorded: use profile(with_python=True), or %%mtprofile --python in a notebook"
    _location_keys = ("file", "line", "function")
    _facts = tuple(part.name for part in fields(FunctionRow))
    _cost_keys = _facts[3:]
    _sort_key, _tie_key = "own_ns", "total_ns"

    def __init__(self, trace: Trace) -> None:
        super().__init__(_rows(trace))
        self._trace = trace

    def _content(self, rows: list[FunctionRow]) -> Table:
        trace, whole_ns = self._trace, sum(row.own_ns for row in rows)

        def estimate(ns: int) -> int | str:
            return f"~{units.duration(ns)}" if ns else ns

        def made(row: FunctionRow) -> dict[str, Any]:
            return {
                "where": source_location(trace, row.file, row.line) if row.file else "",
                "share": (row.own_ns, whole_ns),
                "error_ns": ("?" if row.error_ns is None else row.error_ns) if row.own_ns else None,
                "ops_ns": row.ops_ns if trace.stack is not None else estimate(row.ops_ns),
                **{key: estimate(getattr(row, key)) for key in ("own_ns", "python_ns", "waiting_ns", "total_ns")},
            }

        notes = (
            f"Total of all threads: {units.duration(whole_ns)}",
            f"Times marked ~ are estimates from {sum(row.samples for row in rows):,} samples.",
            *(f"Note: {note}" for note in coverage_notes(trace)),
        )
        return table_of(_COLUMNS, rows, made, notes=notes)


@once_a_trace
def _rows(trace: Trace) -> list[FunctionRow]:
    if trace.stacks is None or trace.samples is None:
        return []
    number: dict[Frame, int] = {}
    beginnings = _Beginnings(trace)
    function_of = [number.setdefault(beginnings.of(frame), len(number)) for frame in trace.stacks.frames]
    costs = function_costs(trace, function_of, len(number))
    if costs is None:
        return []
    rows = []
    for index, frame in enumerate((*number, Frame("", 0, UNKNOWN))):
        parts = [int(column[index]) for column in (costs.ops_ns, costs.python_ns, costs.waiting_ns)]
        total_ns, error = int(costs.total_ns[index]), float(costs.error_ns[index])
        if total_ns:
            error_ns = None if math.isnan(error) else round(error)
            rest = int(costs.samples[index]), count_of_calls(trace, frame)
            rows.append(FunctionRow(*frame, sum(parts), parts[0], parts[1], parts[2], total_ns, error_ns, *rest))
    return rows


class _Beginnings:
    """Finds where functions begin, in the source text of their files."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: For each file and name, the lines of its definitions.
        self._lines: dict[tuple[str, str], list[int]] = {}

    def of(self, frame: Frame) -> Frame:
        """The frame with the line at which its function begins. Frames of one function become equal."""
        if frame.function == "<module>":
            return frame._replace(line=1)
        if not frame.function.isidentifier():  # <lambda>, <listcomp>
            return frame
        before = [line for line in self._definitions(frame.file, frame.function) if line <= frame.line]
        return frame._replace(line=before[-1] if before else 0)

    def _definitions(self, file: str, name: str) -> list[int]:
        key = (file, name)
        if key not in self._lines:
            define = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
            lines = enumerate(source_lines(self._trace, file), 1)
            self._lines[key] = [number for number, line in lines if define.match(line)]
        return self._lines[key]
