"""`Ranks`: a row for each rank, the collectives in which ranks meet, and the rank that the others wait for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from mtprof_nb.analysis import units
from mtprof_nb.analysis.ranks.call_groups import CollectiveCalls, collective_calls
from mtprof_nb.analysis.ranks.rank_figures import RankFigures, rank_figures
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.analysis.ranks.stragglers import Straggler, straggler
from mtprof_nb.analysis.steps.step_times import step_matrix
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.row_table import RowTable, facts_of
from mtprof_nb.tables.table import Table, TableColumn, table_of
from mtprof_nb.tables.writers.as_dataframe import data_frame

if TYPE_CHECKING:
    import pandas as pd


RANK_COLUMNS = (
    TableColumn("wall_ns", "Wall", "time", "recorded time"),
    TableColumn("in_ops_ns", "In ops", "time", "self time of all ops, summed over threads"),
    TableColumn("computing_ns", "Computing", "time", "a kernel ran; without devices, an op"),
    TableColumn("communicating_ns", "Comm.", "time", "collectives after all ranks had come, while nothing computed"),
    TableColumn("waiting_ns", "Waiting", "time", "in collectives until the last rank came, while nothing computed"),
    TableColumn("outside_ns", "Outside", "time", "none of these: Python code, input, a device without work"),
    TableColumn("came_last", "Last", "count", "in how many collectives it came last"),
    TableColumn("waited_for_ns", "Waited for", "time", "how long each of the others waited for it, on average"),
    TableColumn("step_ns", "Step", "time", "median time of a step"),
    TableColumn("peak_bytes", "Peak memory", "bytes", "most bytes held at once, of one device"),
    TableColumn("hottest", "Hottest line", "words", "the line with the most time on this rank"),
)
COLLECTIVE_COLUMNS = (
    TableColumn("calls", "Calls", "count", "how often ranks met in it"),
    TableColumn("processes", "Ranks", "count", "ranks of this recording that took part"),
    TableColumn("nbytes", "Size", "bytes", "bytes of one rank in one call"),
    TableColumn("bytes_per_s", "Bandwidth", "rate", "bytes of one rank in a second of the exchange"),
    TableColumn("exchange_ns", "Exchange", "time", "from the last rank's coming to the end, in all calls"),
    TableColumn("wait_ns", "Wait", "time", "time that all ranks together waited for the last to come"),
    TableColumn("waiter", "Waited most", "text", "the rank that waited the longest"),
    TableColumn("last", "Most often last", "words", "the rank that came last most often"),
)
#: Beyond this number, a page shows the ranks that the others waited for longest.
_MOST_RANKS = 16
#: Times that are parts of the wall time without the profiler's.
PARTS = ("computing_ns", "communicating_ns", "waiting_ns", "outside_ns")
_BRIEF = ("title", "wall_ns", *PARTS, "came_last", "peak_bytes", "hottest")


class Ranks(RowTable[RankFigures]):
    """The processes of a recording by rank. A recording of one process has one row."""

    _facts = tuple(part.name for part in fields(RankFigures))

    def __init__(self, trace: Trace) -> None:
        super().__init__(rank_figures(trace))
        self._trace = trace

    @property
    def straggler(self) -> Straggler | None:
        """The rank that the others waited for, with the evidence as its text; None if they waited for no single one."""
        return straggler(self._trace)

    @property
    def evidence(self) -> str:
        """The straggler and why, or that there is none, as a sentence."""
        return rank_sentence(self._trace)

    def collectives(self) -> RankCollectives:
        """Collectives matched over ranks: size, bandwidth, and how long each rank waited for the last to come."""
        return RankCollectives(self._trace)

    def steps(self) -> pd.DataFrame:
        """A pandas DataFrame with a row a step and a column a rank: nanoseconds. Needs pandas."""
        matrix = step_matrix(self._trace)
        columns = {
            title: [ns if ns >= 0 else None for ns in matrix.duration_ns[:, place].tolist()]
            for place, title in enumerate(titles(self._trace))
        }
        return data_frame(columns, index=list(matrix.numbers)).rename_axis("step")

    def content(self) -> Table:
        """A row for each rank, below the sentence about the straggler."""
        columns = (TableColumn("title", "Rank", "words"), *RANK_COLUMNS)
        return table_of(columns, self._rows, _shown_rank, sentence=self.evidence)

    def brief(self) -> Table | None:
        """The ranks that others waited for longest, with few columns, as a page shows them; None for one process."""
        if len(self) < 2:
            return None
        table, left = self.content(), len(self) - _MOST_RANKS
        if self.straggler is not None:  # the overview names it
            table = replace(table, sentence="")
        if left > 0:
            order = sorted(range(len(self)), key=lambda place: -self._rows[place].waited_for_ns)[:_MOST_RANKS]
            note = f"showing the {_MOST_RANKS} ranks that others waited for longest; {left:,} more"
            table = replace(table, rows=[table.rows[place] for place in order], notes=(note,))
        return table.only(*_BRIEF)


def rank_sentence(trace: Trace) -> str:
    """The straggler with the evidence; that there is none; or why that is not known. "" for one process."""
    if len(trace.processes) < 2:
        return ""
    if (slowest := straggler(trace)) is not None:
        return str(slowest)
    if not any(row.collectives for row in rank_figures(trace)):
        return "no collectives in which ranks wait for each other were recorded: who waits for whom is not known"
    return "no single rank keeps the others waiting"


def _shown_rank(row: RankFigures) -> dict[str, Any]:
    hottest = f"{row.hottest_line} {units.duration(row.hottest_line_ns)}" if row.hottest_line else None
    return {
        **{key: (getattr(row, key), row.program_ns) for key in PARTS},
        "came_last": f"{row.came_last} of {row.collectives}",
        "hottest": hottest,
    }


class RankCollectives(RowTable[CollectiveCalls]):
    """Collectives by name, group and size, those with the longest exchange and waits first."""

    _facts = tuple(part.name for part in fields(CollectiveCalls) if part.name != "waits_ns")

    def __init__(self, trace: Trace) -> None:
        super().__init__(collective_calls(trace))

    def facts(self) -> Table:
        """A column for each field, `gb_per_s`, and `wait_ns, rank 0` and so on."""
        data = facts_of(self._rows, (*self._facts, "gb_per_s"))
        ranks = list(dict.fromkeys(title for row in self._rows for title in row.waits_ns))
        waits = ([row.waits_ns.get(title) for title in ranks] for row in self._rows)
        return Table(
            [*data.columns, *(TableColumn(f"wait_ns, {title}") for title in ranks)],
            [[*row, *wait] for row, wait in zip(data.rows, waits, strict=True)],
        )

    def content(self) -> Table:
        """A row for each name, group and size."""
        columns = (TableColumn("name", "Name", "code"), TableColumn("group", "Group", "words"), *COLLECTIVE_COLUMNS)
        return table_of(columns, self._rows, shown_collective)


def shown_collective(row: CollectiveCalls) -> dict[str, Any]:
    """Values of the columns that are no fields."""
    last = f"{row.most_often_last}, {row.times_last} of {row.calls}" if row.most_often_last else ""
    rate = None if row.nbytes is None else round((row.gb_per_s or 0) * 1e9)
    waiter = f"{row.longest_wait} {units.duration(row.longest_wait_ns)}" if row.longest_wait else None
    return {"bytes_per_s": rate, "waiter": waiter, "last": last}
