"""`Ranks`: a row for each rank, the collectives in which ranks meet, and the rank that the others wait for."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from mtprof_nb.analysis.ranks.call_groups import CollectiveCalls, collective_calls
from mtprof_nb.analysis.ranks.rank_figures import RankFigures, rank_figures
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.analysis.ranks.step_matrix import step_matrix
from mtprof_nb.analysis.ranks.stragglers import Straggler, straggler
from mtprof_nb.errors import legible
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.row_list import RowList
from mtprof_nb.tables.text_table import aligned, data_frame, format_memory, format_share, format_time

if TYPE_CHECKING:
    import pandas as pd


class Ranks(RowList[RankFigures]):
    """The processes of a recording by rank. A recording of one process has one row."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(rank_figures(trace))
        self._trace = trace

    def __repr__(self) -> str:
        return self.table()

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

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row a rank and a column for each field of `RankFigures`. Needs pandas."""
        return data_frame([asdict(row) for row in self._rows], columns=[part.name for part in fields(RankFigures)])

    def table(self) -> str:
        """The rows as aligned text, below the sentence about the straggler."""
        cells = [list(_TITLES), *(_cells(row) for row in self._rows)]
        lines = [line.rstrip() for line in aligned(cells, texts=(0, len(_TITLES) - 1))]
        return "\n".join([*filter(None, [legible(self.evidence)]), *lines]) + "\n"


def rank_sentence(trace: Trace) -> str:
    """The straggler with the evidence; that there is none; or why that is not known. "" for one process."""
    if len(trace.processes) < 2:
        return ""
    found = straggler(trace)
    if found is not None:
        return str(found)
    if not any(row.collectives for row in rank_figures(trace)):
        return "no collectives in which ranks wait for each other were recorded: who waits for whom is not known"
    return "no single rank keeps the others waiting"


_TITLES = (
    *("rank", "wall", "in ops", "computing", "communicating", "waiting", "outside", "last", "waited for", "step"),
    *("peak memory", "hottest line"),
)


def _cells(row: RankFigures) -> list[str]:
    def part(ns: int) -> str:
        return f"{format_time(ns / 1e3)} {format_share(ns, row.program_ns):>7}"

    return [
        row.title,
        format_time(row.wall_ns / 1e3),
        format_time(row.in_ops_ns / 1e3),
        *(part(ns) for ns in (row.computing_ns, row.communicating_ns, row.waiting_ns, row.outside_ns)),
        f"{row.came_last} of {row.collectives}",
        format_time(row.waited_for_ns / 1e3),
        "" if row.step_ns is None else format_time(row.step_ns / 1e3),
        "" if row.peak_bytes is None else format_memory(row.peak_bytes),
        f"{row.hottest_line} {format_time(row.hottest_line_ns / 1e3)}" if row.hottest_line else "",
    ]


class RankCollectives(RowList[CollectiveCalls]):
    """Collectives by name, group and size, those with the longest exchange and waits first."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(collective_calls(trace))

    def __repr__(self) -> str:
        return self.table()

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame: a column for each field, `gb_per_s`, and `wait_ns, rank 0` and so on. Needs pandas."""
        rows = []
        for row in self._rows:
            values = asdict(row)
            waits = {f"wait_ns, {title}": ns for title, ns in values.pop("waits_ns").items()}
            rows.append({**values, "gb_per_s": row.gb_per_s, **waits})
        names = [part.name for part in fields(CollectiveCalls) if part.name != "waits_ns"]
        of_ranks = list(dict.fromkeys(name for row in rows for name in row if name.startswith("wait_ns, ")))
        return data_frame(rows, columns=[*names, "gb_per_s", *of_ranks])

    def table(self) -> str:
        """The rows as aligned text."""
        titles_ = ["name", "group", "bytes", "calls", "exchange", "GB/s", "wait", "longest wait", "last"]
        lines = [line.rstrip() for line in aligned([titles_, *map(_collective_cells, self._rows)], texts=(0, 1, 7, 8))]
        return "\n".join(lines) + "\n"


def _collective_cells(row: CollectiveCalls) -> list[str]:
    longest = f"{row.longest_wait} {format_time(row.longest_wait_ns / 1e3)}" if row.longest_wait else ""
    return [
        row.name,
        row.group,
        "" if row.nbytes is None else format_memory(row.nbytes),
        str(row.calls),
        format_time(row.exchange_ns / 1e3),
        "" if row.gb_per_s is None else f"{row.gb_per_s:.3f}",
        format_time(row.wait_ns / 1e3),
        longest,
        f"{row.most_often_last} {row.times_last} of {row.calls}" if row.most_often_last else "",
    ]
