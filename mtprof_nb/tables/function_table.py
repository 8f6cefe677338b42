"""`Functions`: where the time of the program went, by Python function, as rows, as text and as a DataFrame."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from mtprof_nb.analysis.functions.call_counts import count_of_calls
from mtprof_nb.analysis.functions.function_costs import function_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import Frame, Trace
from mtprof_nb.tables.line_table import source_lines
from mtprof_nb.tables.row_table import RowTable, ruled
from mtprof_nb.tables.text_table import data_frame, format_share, format_time

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "(unknown)"
_NOTHING = "Python's time was not recorded: use profile(with_python=True), or %%mtprofile --python in a notebook"


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


class Functions(RowTable[FunctionRow]):
    """The functions of a trace, the largest `own_ns` first. Their `own_ns` sum up to the time of all threads.

    Empty without samples, which `profile(with_python=True)` takes. Time of which no function is known is the last row.
    """

    _location_keys = ("file", "line", "function")
    _cost_keys = tuple(part.name for part in fields(FunctionRow) if part.name not in ("file", "line", "function"))
    _tie_key = "total_ns"

    def __init__(self, trace: Trace) -> None:
        super().__init__(_rows(trace))
        self._trace = trace

    def __repr__(self) -> str:
        return self.table(row_limit=30)

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row a function and a column for each field of `FunctionRow`. Needs pandas."""
        columns = [*self._location_keys, *self._cost_keys]
        return data_frame([asdict(row) for row in self._rows], columns=columns)

    def table(self, sort_by: str = "own_ns", row_limit: int | None = 100) -> str:
        """The rows as aligned text, the largest `sort_by` first. A negative `row_limit`, or None, shows all rows."""
        if not self._rows:
            return f"{_NOTHING}\n"
        shown, left_out = self._shown(sort_by, row_limit)
        whole_ns = sum(row.own_ns for row in self._rows)
        ends = [
            f"Total of all threads: {format_time(whole_ns / 1e3)}",
            f"Times marked ~ are estimates from {sum(row.samples for row in self._rows):,} samples.",
            *(f"Note: {note}" for note in coverage_notes(self._trace)),
        ]
        return "\n".join([*_table_lines(self._trace, shown, whole_ns), *left_out, *ends]) + "\n"


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
        self._found: dict[tuple[str, str], list[int]] = {}

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
        if key not in self._found:
            define = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
            lines = enumerate(source_lines(self._trace, file), 1)
            self._found[key] = [number for number, line in lines if define.match(line)]
        return self._found[key]


def _table_lines(trace: Trace, rows: list[FunctionRow], whole_ns: int) -> list[str]:
    def estimate(ns: int) -> str:
        return f"~{format_time(ns / 1e3)}" if ns else ""

    is_exact = trace.stack is not None
    has_calls = any(row.calls is not None for row in rows)
    titles = ["Function", "Where", "Own %", "Own", "+/-", "Ops", "Python", "Waiting", "Total", *["Calls"] * has_calls]
    cells = [titles]
    for row in rows:
        where = source_location(trace, row.file, row.line) if row.file else ""
        ops = format_time(row.ops_ns / 1e3) if is_exact and row.ops_ns else estimate(row.ops_ns)
        error = "?" if row.error_ns is None else format_time(row.error_ns / 1e3)
        own = f"~{format_time(row.own_ns / 1e3)}"
        times = [own, error, ops, estimate(row.python_ns), estimate(row.waiting_ns), estimate(row.total_ns)]
        calls = [str(row.calls or "")] * has_calls
        cells.append([row.function, where, format_share(row.own_ns, whole_ns), *times, *calls])
    return ruled(cells)
