"""`Functions`: where the time of the program went, by Python function, as rows, as text and as a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, overload

from mtprof_nb.analysis.functions.function_costs import function_costs
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import Frame, Trace
from mtprof_nb.results.line_table import source_lines
from mtprof_nb.results.text_table import aligned, data_frame, format_share, format_time

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "(unknown)"
_NOTHING = "Python's time was not recorded: profile with_python=True, or in a notebook with %%mtprofile --python"


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
    #: Standard error of the part of `own_ns` that is an estimate.
    error_ns: int
    #: Samples in which the function itself was running.
    samples: int


_COLUMNS = tuple(part.name for part in fields(FunctionRow))


class Functions(Sequence[FunctionRow]):
    """The functions of a trace, the largest `own_ns` first. Their `own_ns` sum up to the time of all threads.

    Empty without samples, which `profile(with_python=True)` takes. Time of which no function is known is the last row.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._rows = _rows(trace)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> FunctionRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionRow]: ...
    def __getitem__(self, index: int | slice) -> FunctionRow | list[FunctionRow]:
        return self._rows[index]

    def __iter__(self) -> Iterator[FunctionRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return self.table(row_limit=30)

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row a function and a column for each field of `FunctionRow`. Needs pandas."""
        return data_frame([asdict(row) for row in self._rows], columns=list(_COLUMNS))

    def table(self, sort_by: str = "own_ns", row_limit: int | None = 100) -> str:
        """The rows as aligned text, the largest `sort_by` first. A negative `row_limit`, or None, shows all rows."""
        if not self._rows:
            return f"{_NOTHING}\n"
        rows = _sorted(self._rows, sort_by)
        shown = rows if row_limit is None or row_limit < 0 else rows[:row_limit]
        lines = _table_lines(self._trace, shown, sum(row.own_ns for row in rows))
        if len(shown) < len(rows):
            lines.append(f"showing {len(shown)} of {len(rows)} functions")
        lines.append(f"Total: {format_time(sum(row.own_ns for row in rows) / 1e3)}")
        lines.append(f"Times marked ~ are estimates from {sum(row.samples for row in rows):,} samples.")
        return "\n".join(lines) + "\n"


def _sorted(rows: list[FunctionRow], key: str) -> list[FunctionRow]:
    if key not in _COLUMNS:
        msg = f"unknown sort key {key!r}: use one of {', '.join(_COLUMNS)}"
        raise AttributeError(msg)
    if key in ("file", "line", "function"):
        return sorted(rows, key=lambda row: (row.file == "", getattr(row, key), row.file, row.line))
    return sorted(rows, key=lambda row: (row.file == "", -getattr(row, key), -row.total_ns, row.file, row.line))


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
        total_ns, error_ns = int(costs.total_ns[index]), round(float(costs.error_ns[index]))
        if total_ns:
            samples = int(costs.samples[index])
            ops_ns, python_ns, waiting_ns = parts
            rows.append(FunctionRow(*frame, sum(parts), ops_ns, python_ns, waiting_ns, total_ns, error_ns, samples))
    return _sorted(rows, "own_ns")


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
    titles = ["Function", "Where", "Own %", "Own", "+/-", "Ops", "Python", "Waiting", "Total"]
    cells = [titles]
    for row in rows:
        where = source_location(trace, row.file, row.line) if row.file else ""
        ops = format_time(row.ops_ns / 1e3) if is_exact and row.ops_ns else estimate(row.ops_ns)
        own = format_time(row.own_ns / 1e3) if is_exact and row.own_ns == row.ops_ns else estimate(row.own_ns)
        error = format_time(row.error_ns / 1e3) if row.error_ns else ""
        times = [own, error, ops, estimate(row.python_ns), estimate(row.waiting_ns), estimate(row.total_ns)]
        cells.append([row.function, where, format_share(row.own_ns, whole_ns), *times])
    texts = [line.rstrip() for line in aligned(cells, texts=(0, 1))]
    rule = "  ".join("-" * max(map(len, column)) for column in zip(*cells, strict=True))
    return [rule, texts[0], rule, *texts[1:], rule]
