"""The ranks tab: who waits for whom, a row for each rank, each step on each rank, and the collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtprof_nb.analysis import units
from mtprof_nb.analysis.ranks.call_groups import CollectiveCalls, collective_calls
from mtprof_nb.analysis.ranks.rank_figures import RankFigures, rank_figures
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.analysis.steps.step_times import step_matrix
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.rank_table import PARTS, RankCollectives, Ranks, rank_sentence, shown_collective
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Tab

#: The most cells of the matrix of steps and ranks, and the most of its steps; the others are joined.
_MOST_CELLS, _MOST_STEPS = 60_000, 240
#: The most rows of collectives.
_MOST_COLLECTIVES = 400


class RanksTab(Tab):
    """Asks nothing: all of it is in the first content."""

    def first(self) -> Answer:
        """The sentence about the straggler, the rows of ranks, the matrix of steps, and the collectives."""
        trace = self._scene.trace
        rows, calls = rank_figures(trace), collective_calls(trace)[:_MOST_COLLECTIVES]
        # The label of a row has its name, and of a collective its group.
        of_ranks, of_calls = Ranks(trace).content().columns[1:], RankCollectives(trace).content().columns[2:]
        return {
            "sentence": shown(units.sentence(rank_sentence(trace))),
            "columns": [column._asdict() for column in of_ranks],
            "rows": _ranks(trace, rows, [column.key for column in of_ranks if column.unit != "words"]),
            "parts": [[getattr(row, key) for key in PARTS] for row in rows],
            "steps": _steps(trace, rows),
            "collective_columns": [column._asdict() for column in of_calls],
            "collectives": _collectives(calls),
        }


def _ranks(trace: Trace, rows: Sequence[RankFigures], keys: Sequence[str]) -> Answer:
    numbers = {title: number for number, title in enumerate(titles(trace))}
    return {
        "id": [row.rank for row in rows],
        "label": [shown(row.title) for row in rows],
        "detail": [shown(row.host) for row in rows],
        "process": [numbers[row.title] for row in rows],
        "value": {key: [getattr(row, key) for row in rows] for key in keys},
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
        # The longest step of each group, -1 where a rank has none.
        "duration_ns": np.maximum.reduceat(durations, first, axis=1).tolist(),
    }


def _collectives(rows: Sequence[CollectiveCalls]) -> Answer:
    values = ("calls", "processes", "nbytes", "exchange_ns", "wait_ns")
    made = [shown_collective(row) for row in rows]
    return {
        "id": list(range(len(rows))),
        "label": [shown(row.name) for row in rows],
        "detail": [shown(f"group {row.group}") if row.group else "" for row in rows],
        "value": {
            **{key: [getattr(row, key) for row in rows] for key in values},
            "bytes_per_s": [one["bytes_per_s"] or 0 for one in made],
        },
        "text": {
            "waiter": [shown(row.longest_wait) for row in rows],
            "last": [shown(one["last"]) for one in made],
        },
    }
