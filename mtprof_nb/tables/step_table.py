"""`Steps`: one row a step, its time by phase, and the slow ones."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mtprof_nb.analysis import units
from mtprof_nb.analysis.steps.step_figures import StepDifference, StepFigures, step_figures
from mtprof_nb.analysis.summary import coverage_notes
from mtprof_nb.errors import legible, shown
from mtprof_nb.model.source_files import line_label
from mtprof_nb.model.trace import PHASES, Trace
from mtprof_nb.tables.row_table import RowTable
from mtprof_nb.tables.table import Table, TableColumn, table_of

NO_STEPS = "no step was marked: call mtprof_nb.step() at the end of each, or loop over mtprof_nb.steps(loader)"


@dataclass(frozen=True)
class StepRow:
    """One step. Times are in nanoseconds, `start_ns` since the recording began."""

    number: int
    start_ns: int
    duration_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    compiling_ns: int
    #: Time in no op.
    outside_ns: int
    ops: int
    #: Names of what took longer than usual; "" for a step that is not slow.
    differs: str


_COLUMNS = (
    TableColumn("number", "Step", "count"),
    TableColumn("duration_ns", "Time", "time", "from its start to that of the next"),
    *(TableColumn(f"{phase}_ns", phase.capitalize(), "time", f"time of its ops in phase {phase}") for phase in PHASES),
    TableColumn("outside_ns", "Outside ops", "time", "time in no op"),
    TableColumn("ops", "Ops", "count", "ops that ran in it"),
    TableColumn("differs", "Differs", "words", "what took longer than usual in a slow step"),
)


class Steps(RowTable[StepRow]):
    """The marked steps of a recording, in their order. Empty if there are none, and for several processes."""

    _nothing = NO_STEPS
    _facts = tuple(part.name for part in fields(StepRow))

    def __init__(self, trace: Trace) -> None:
        self._trace, self._figures, self._notes = trace, step_figures(trace), coverage_notes(trace)
        super().__init__([] if self._figures is None else _rows(trace, self._figures))

    @property
    def median_ns(self) -> int | None:
        """The median duration; None without steps."""
        return None if self._figures is None else self._figures.median_ns

    @property
    def slow(self) -> list[StepRow]:
        """The steps of 1.5 times the median or more, at most ten."""
        return [row for row in self._rows if row.differs]

    def __repr__(self) -> str:
        slow = [f"step {row.number}: {units.duration(row.duration_ns)}; {shown(row.differs)}" for row in self.slow]
        return "\n".join([self._sentence, *slow, *map(legible, self._notes)])

    def content(self) -> Table:
        """A row for each step, below their median and spread."""
        return table_of(_COLUMNS, self._rows, notes=self._notes, sentence=self._sentence)

    @property
    def _sentence(self) -> str:
        return steps_sentence(self._trace, self._figures) if self._figures else NO_STEPS


def steps_sentence(trace: Trace, steps: StepFigures) -> str:
    """As "20 steps; median 12.0 ms, 80 % of them from 11.0 ms to 14.0 ms". A full recording has cut the last one."""
    low, high = units.duration(steps.quantile_ns(0.1)), units.duration(steps.quantile_ns(0.9))
    spread = f", 80 % of them from {low} to {high}" if len(steps) > 1 else ""
    count = units.plural(len(steps), "whole step" if trace.unrecorded else "step")
    return f"{count}; median {units.duration(steps.median_ns)}{spread}"


def difference_text(trace: Trace, one: StepDifference) -> str:
    """As "train.py:3 takes 5.00 ms instead of 1.00 ms"."""
    title = line_label(trace, *one.line) if one.line else one.title
    return f"{title} takes {units.duration(one.ns)} instead of {units.duration(one.usual_ns)}"


def _rows(trace: Trace, steps: StepFigures) -> list[StepRow]:
    slow = {one.position: one.differences for one in steps.slow}
    texts = {
        at: "; ".join(difference_text(trace, one) for one in differences) or "slower"
        for at, differences in slow.items()
    }
    columns = {
        "number": steps.number,
        "start_ns": steps.start_ns - trace.began_ns,
        "duration_ns": steps.duration_ns,
        **{f"{phase}_ns": column for phase, column in zip(PHASES, steps.phases_ns, strict=True)},
        "outside_ns": steps.outside_ns,
        "ops": steps.ops,
    }
    listed = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = (dict(zip(columns, values, strict=True)) for values in listed)
    return [StepRow(**row, differs=texts.get(at, "")) for at, row in enumerate(rows)]
