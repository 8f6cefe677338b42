"""The ranks tab: who waits for whom, a row for each rank, each step on each rank, and the collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.operators.operator_table import Column
from mtprof_nb.analysis.ranks.call_groups import CollectiveCalls, collective_calls
from mtprof_nb.analysis.ranks.rank_figures import RankFigures, rank_figures
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.analysis.ranks.step_matrix import step_matrix
from mtprof_nb.model.trace import Int64, Trace
from mtprof_nb.tables.rank_table import rank_sentence
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Tab

#: The most cells of the matrix of steps and ranks, and the most of its steps; the others are joined.
_MOST_CELLS, _MOST_STEPS = 60_000, 240
#: The most rows of collectives.
_MOST_COLLECTIVES = 400
_RANK_COLUMNS = (
    Column("wall_ns", "Wall", "time", "recorded time"),
    Column("in_ops_ns", "In ops", "time", "self time of all ops, summed over threads"),
    Column("computing_ns", "Computing", "time", "a kernel ran; without devices, an op"),
    Column("communicating_ns", "Comm.", "time", "collectives after all ranks had come, while nothing computed"),
    Column("waiting_ns", "Waiting", "time", "in collectives until the last rank came, while nothing computed"),
    Column("outside_ns", "Outside", "time", "none of these: Python code, input, a device without work"),
    Column("came_last", "Last", "count", "in how many collectives it came last"),
    Column("waited_for_ns", "Waited for", "time", "how long each of the others waited for it, on average"),
)
_STEP = Column("step_ns", "Step", "time", "median time of a step")
_PEAK = Column("peak_bytes", "Peak memory", "bytes", "most bytes held at once, of one device")
_HOTTEST = Column("hottest", "Hottest line", "words", "the line with the most time on this rank")
_COLLECTIVE_COLUMNS = (
    Column("calls", "Calls", "count", "how often ranks met in it"),
    Column("processes", "Ranks", "count", "ranks of this recording that took part"),
    Column("exchange_ns", "Exchange", "time", "from the last rank's coming to the end, in all calls"),
    Column("wait_ns", "Wait", "time", "time that all ranks together waited for the last to come"),
    Column("waiter", "Waited most", "text", "the rank that waited the longest"),
    Column("last", "Most often last", "words", "the rank that came last most often"),
)
_SIZE_COLUMNS = (
    Column("nbytes", "Size", "bytes", "bytes of one rank in one call"),
    Column("bytes_per_s", "Bandwidth", "rate", "bytes of one rank in a second of the exchange"),
)


class RanksTab(Tab):
    """Asks nothing: all of it is in the first content."""

    def first(self) -> Answer:
        """The sentence about the straggler, the rows of ranks, the matrix of steps, and the collectives."""
        trace = self._scene.trace
        rows, calls = rank_figures(trace), collective_calls(trace)[:_MOST_COLLECTIVES]
        return {
            "sentence": shown(units.sentence(rank_sentence(trace))),
            "columns": [column._asdict() for column in rank_columns(rows)],
            "rows": _ranks(trace, rows),
            "parts": [list(parts_of(row).values()) for row in rows],
            "steps": _steps(trace, rows),
            "collective_columns": [column._asdict() for column in _collective_columns(calls)],
            "collectives": _collectives(calls),
        }


def rank_columns(rows: Sequence[RankFigures]) -> list[Column]:
    """The columns that these ranks can fill."""
    step = [_STEP] if any(row.step_ns is not None for row in rows) else []
    peak = [_PEAK] if any(row.peak_bytes is not None for row in rows) else []
    hottest = [_HOTTEST] if any(row.hottest_line for row in rows) else []
    return [*_RANK_COLUMNS, *step, *peak, *hottest]


def _collective_columns(rows: Sequence[CollectiveCalls]) -> list[Column]:
    """The columns that these collectives can fill: sizes only if those of any are known."""
    sizes = _SIZE_COLUMNS if any(row.nbytes is not None for row in rows) else ()
    return [*_COLLECTIVE_COLUMNS[:2], *sizes, *_COLLECTIVE_COLUMNS[2:]]


def parts_of(row: RankFigures) -> dict[str, int]:
    """The parts of a rank's wall time without the profiler's."""
    return {
        "computing": row.computing_ns,
        "communicating": row.communicating_ns,
        "waiting": row.waiting_ns,
        "outside": row.outside_ns,
    }


def _ranks(trace: Trace, rows: Sequence[RankFigures]) -> Answer:
    numbers = {title: number for number, title in enumerate(titles(trace))}
    columns = [column.key for column in rank_columns(rows) if column.unit != "words"]
    return {
        "id": [row.rank for row in rows],
        "label": [shown(row.title) for row in rows],
        "detail": [shown(row.host) for row in rows],
        "process": [numbers[row.title] for row in rows],
        "value": {key: [getattr(row, key) for row in rows] for key in columns},
        "text": {"hottest": [shown(row.hottest_line) for row in rows]},
    }


def _steps(trace: Trace, rows: Sequence[RankFigures]) -> Answer | None:
    """Time of each step, a row for each rank in their order; None without steps. Many steps are joined in groups."""
    matrix, numbers = step_matrix(trace), {title: number for number, title in enumerate(titles(trace))}
    if not len(matrix):
        return None
    durations = matrix.duration_ns[:, [numbers[row.title] for row in rows]].T
    most = max(min(_MOST_STEPS, _MOST_CELLS // max(len(rows), 1)), 1)
    group = -(-len(matrix) // most)
    first = np.arange(0, len(matrix), group)
    return {
        "numbers": [matrix.numbers[place] for place in first.tolist()],
        "group": group,
        "duration_ns": _longest(durations, first).tolist(),
    }


def _longest(durations: Int64, first: Int64) -> Any:
    """The longest step of each group of steps, -1 where a rank has none."""
    return np.maximum.reduceat(durations, first, axis=1)


def _collectives(rows: Sequence[CollectiveCalls]) -> Answer:
    def last(row: CollectiveCalls) -> str:
        return f"{row.most_often_last}, {row.times_last} of {row.calls}" if row.most_often_last else ""

    return {
        "id": list(range(len(rows))),
        "label": [shown(row.name) for row in rows],
        "detail": [shown(f"group {row.group}") if row.group else "" for row in rows],
        "value": {
            "calls": [row.calls for row in rows],
            "processes": [row.processes for row in rows],
            "nbytes": [row.nbytes for row in rows],
            "exchange_ns": [row.exchange_ns for row in rows],
            "bytes_per_s": [round((row.gb_per_s or 0) * 1e9) for row in rows],
            "wait_ns": [row.wait_ns for row in rows],
        },
        "text": {
            "waiter": [shown(row.longest_wait) for row in rows],
            "last": [shown(last(row)) for row in rows],
        },
    }
