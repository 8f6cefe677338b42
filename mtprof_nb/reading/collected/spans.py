"""The spans of a file as whole columns in the order of a `Trace`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import Columns, Int64
from mtprof_nb.reading.collected.collector import Collector

_COMPLETE, _NESTED, _ASYNC = range(3)


@dataclass(frozen=True)
class Spans:
    """Columns by name: name, category, lane, start_ns, duration_ns, and the facts that some span has."""

    columns: Columns
    #: How many spans have no end, or an end that no span has; and how many durations were negative.
    problems: Counter[str]

    def __len__(self) -> int:
        return len(self.columns["start_ns"])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column; -1 in each row where no span has this fact."""
        found = self.columns.get(name)
        return np.full(len(self), -1, np.int64) if found is None else found

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def take(self, rows: npt.NDArray[Any]) -> Spans:
        """The spans at `rows`, in that order."""
        return Spans({name: column[rows] for name, column in self.columns.items()}, self.problems)


def whole_spans(collector: Collector) -> Spans:
    """All spans of the file, sorted by start, the longer first; of equal ones, the first in the file first."""
    names = {"place", "name", "category", "lane", "start_ns", "duration_ns"} | collector.spans.names
    columns: Columns = {name: collector.spans.whole(name) for name in names}
    problems: Counter[str] = Counter()
    if "open" in columns:
        columns |= _ended(columns, collector, problems)
    negative = columns["duration_ns"] < 0
    if negative.any():
        problems["Durations below zero, taken as 0"] = int(negative.sum())
        columns["duration_ns"] = np.maximum(columns["duration_ns"], 0)
    order = np.lexsort((columns.pop("place"), -columns["duration_ns"], columns["start_ns"]))
    return Spans(columns, problems).take(order)


def _ended(columns: Columns, collector: Collector, problems: Counter[str]) -> Columns:
    """Durations of spans whose ends are events of their own."""
    ends: Columns = {name: collector.ends.whole(name) for name in ("lane", "at_ns", "id", "place")}
    duration_ns = columns["duration_ns"].copy()
    last_ns = int(max((columns["start_ns"] + duration_ns).max(initial=0), ends["at_ns"].max(initial=0)))
    for kind, key in ((_NESTED, "lane"), (_ASYNC, "id")):
        begins = np.flatnonzero(columns["open"] == kind)
        chosen = np.flatnonzero((ends["id"] >= 0) == (kind == _ASYNC))
        keys, moments, places = (
            np.append(columns[one][begins], ends[other][chosen])
            for one, other in ((key, key), ("start_ns", "at_ns"), ("place", "place"))
        )
        end_of, lonely = _paired(keys, moments, places, len(begins))
        found = end_of >= 0
        end_ns = np.where(found, np.append(ends["at_ns"][chosen], last_ns)[end_of], last_ns)
        duration_ns[begins] = end_ns - columns["start_ns"][begins]
        problems["Spans without an end, which end with the file"] += int((~found).sum())
        problems["Ends of spans that never began, left out"] += lonely
    return {"duration_ns": duration_ns, "is_async": (columns["open"] == _ASYNC).astype(np.int8)}


def _paired(keys: Int64, moments: Int64, places: Int64, begins: int) -> tuple[Int64, int]:
    """For each of the first `begins` moments the position of its end behind them, or -1; and how many ends are left.

    Of the spans with one key, the one that began last ends first.
    """
    found = np.full(begins, -1, np.int64)
    open_rows: dict[int, list[int]] = {}
    lonely = 0
    key_of = keys.tolist()
    for row in np.lexsort((places, moments)).tolist():
        rows = open_rows.setdefault(key_of[row], [])
        if row < begins:
            rows.append(row)
        elif rows:
            found[rows.pop()] = row - begins
        else:
            lonely += 1
    return found, lonely
