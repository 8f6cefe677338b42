"""The spans of a file as whole columns in the order of a `Trace`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import Bool, Columns, Int64
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.growing_columns import GrowingColumns

_NEEDED_OFTEN = ("name", "category", "lane", "start_ns", "duration_ns")
_COMPLETE, _NESTED, _ASYNC = range(3)
_PYTHON_CALLS = ("python_function", "Python")


@dataclass(frozen=True)
class Spans:
    """Columns by name: name, category, lane, start_ns, duration_ns, and the facts that some span has."""

    #: Columns that are needed often, in the order of the spans.
    columns: Columns
    #: All columns as the file has them, and for each span its row there: a fact is put in order when it is asked for.
    collected: GrowingColumns
    rows: Int64
    #: How many spans have no end, or an end that no span has; and how many durations were negative.
    problems: Counter[str]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column; -1 in each row where no span has this fact."""
        column: npt.NDArray[Any] | None = self.columns.get(name)
        if column is None:
            column = self.collected.whole(name).take(self.rows) if name in self else np.full(len(self), -1, np.int64)
        return column

    def __contains__(self, name: str) -> bool:
        return name in self.columns or name in self.collected.names

    def where(self, name: str, accepted: Iterable[bool]) -> Bool:
        """Which spans have in a column the number of an accepted entry; `accepted` is in order of the numbers."""
        return np.array([*accepted, False], np.bool_).take(self[name])

    def take(self, rows: Int64) -> Spans:
        """The spans at `rows`, in that order."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Spans(columns, self.collected, self.rows.take(rows), self.problems)


def whole_spans(collector: Collector) -> Spans:
    """All spans by start, the longer first; of equal ones Python calls first, then by place in the file."""
    columns: Columns = {name: collector.spans.whole(name) for name in _NEEDED_OFTEN}
    problems: Counter[str] = Counter()
    if "open" in collector.spans.names:
        columns |= _ended(collector, problems)
    negative = columns["duration_ns"] < 0
    if negative.any():
        problems["Durations below zero, taken as 0"] = int(negative.sum())
        columns["duration_ns"] = np.maximum(columns["duration_ns"], 0)
    order = _order(columns["start_ns"], columns["duration_ns"], _ranked_places(columns, collector))
    return Spans({name: column.take(order) for name, column in columns.items()}, collector.spans, order, problems)


def _order(start_ns: Int64, duration_ns: Int64, place: Int64) -> Int64:
    """Positions by start, the longer first, then by place. Most spans start alone: only the others are compared."""
    # Files have long runs of spans in this order, which a stable sort only merges.
    order = np.argsort(start_ns, kind="stable")
    is_tied = np.diff(start_ns[order]) == 0
    tied = np.flatnonzero(np.append(is_tied, False) | np.append(False, is_tied)) if len(order) else order
    rows = order[tied]
    order[tied] = rows[np.lexsort((place[rows], -duration_ns[rows], start_ns[rows]))]
    return order


def _ranked_places(columns: Columns, collector: Collector) -> Int64:
    """Places in the file, Python calls first: in a coarse clock, a call and the op that it runs have equal times."""
    is_call = [category in _PYTHON_CALLS for category in collector.categories]
    place: Int64 = collector.spans.whole("place")
    return place - np.array([*is_call, False]).take(columns["category"]) * collector.count if any(is_call) else place


def _ended(collector: Collector, problems: Counter[str]) -> Columns:
    """Durations of spans whose ends are events of their own."""
    columns = {name: collector.spans.whole(name) for name in ("lane", "start_ns", "duration_ns", "id", "place", "open")}
    ends: Columns = {name: collector.ends.whole(name) for name in ("lane", "at_ns", "id", "place")}
    duration_ns = columns["duration_ns"]
    last_ns = int(max((columns["start_ns"] + duration_ns).max(initial=0), ends["at_ns"].max(initial=0)))
    for kind, key in ((_NESTED, "lane"), (_ASYNC, "id")):
        begins = np.flatnonzero(columns["open"] == kind)
        chosen = np.flatnonzero((ends["id"] >= 0) == (kind == _ASYNC))
        keys, moments, places = (
            np.append(columns[one][begins], ends[other][chosen])
            for one, other in ((key, key), ("start_ns", "at_ns"), ("place", "place"))
        )
        end_of, lonely = _paired(keys, moments, places, len(begins))
        has_end = end_of >= 0
        end_ns = np.where(has_end, np.append(ends["at_ns"][chosen], last_ns)[end_of], last_ns)
        duration_ns[begins] = end_ns - columns["start_ns"][begins]
        problems["Spans without an end, which end with the file"] += int((~has_end).sum())
        problems["Ends of spans that never began, left out"] += lonely
    return {"duration_ns": duration_ns, "is_async": (columns["open"] == _ASYNC).astype(np.int8)}


def _paired(keys: Int64, moments: Int64, places: Int64, begins: int) -> tuple[Int64, int]:
    """For each of the first `begins` moments the position of its end behind them, or -1; and how many ends are left.

    Of the spans with one key, the one that began last ends first.
    """
    end_of = np.full(begins, -1, np.int64)
    open_rows: dict[int, list[int]] = {}
    lonely = 0
    key_of = keys.tolist()
    for row in np.lexsort((places, moments)).tolist():
        rows = open_rows.setdefault(key_of[row], [])
        if row < begins:
            rows.append(row)
        elif rows:
            end_of[rows.pop()] = row - begins
        else:
            lonely += 1
    return end_of, lonely
