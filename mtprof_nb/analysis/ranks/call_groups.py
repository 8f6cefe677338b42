"""Matched calls of one collective, group and size: their number, bytes, bandwidth, and waits by process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.ranks.matched_calls import matched_calls
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.model.trace import Int64, Trace


@dataclass(frozen=True)
class CollectiveCalls:
    """Calls of one collective in one group of processes with one size."""

    #: As the runtime calls it.
    name: str
    group: str
    #: Bytes of one process's input or output, whichever is larger; None if not known.
    nbytes: int | None
    calls: int
    #: The most processes of this recording that took part.
    processes: int
    #: The time of the exchange alone, after all had come: the sum and the median.
    exchange_ns: int
    median_exchange_ns: int
    #: How long processes waited until the last one came: the sum, and the title of the process with the longest wait.
    wait_ns: int
    longest_wait: str
    longest_wait_ns: int
    #: The process that came last most often, and how often; "" if none waited.
    most_often_last: str
    times_last: int
    #: Nanoseconds that each process waited, by its title.
    waits_ns: dict[str, int]

    @property
    def gb_per_s(self) -> float | None:
        """Bytes of one process per nanosecond of the exchange; None if the bytes are not known."""
        return None if self.nbytes is None or not self.exchange_ns else self.nbytes * self.calls / self.exchange_ns


@once_a_trace
def collective_calls(trace: Trace) -> tuple[CollectiveCalls, ...]:
    """The calls by name, group and size; those with the longest exchange and waits first."""
    calls = matched_calls(trace)
    places: dict[tuple[str, str, int], list[int]] = {}
    for place, (key, size) in enumerate(zip(calls.keys, calls.nbytes.tolist(), strict=True)):
        places.setdefault((key.name, key.group, size), []).append(place)
    groups = [_calls(trace, *key, np.array(rows)) for key, rows in places.items()]
    return tuple(sorted(groups, key=lambda one: -(one.exchange_ns + one.wait_ns)))


def _calls(trace: Trace, name: str, group: str, size: int, rows: Int64) -> CollectiveCalls:
    calls, names = matched_calls(trace), titles(trace)
    waits, exchange = calls.wait_ns[rows].sum(axis=0), calls.exchange_ns[rows]
    took_part = calls.is_there[rows]
    last = np.bincount(calls.last[rows][calls.last[rows] >= 0], minlength=len(names))
    return CollectiveCalls(
        name=name,
        group=group,
        nbytes=size if size >= 0 else None,
        calls=len(rows),
        processes=int(took_part.sum(axis=1).max()),
        exchange_ns=int(exchange.sum()),
        median_exchange_ns=int(np.median(exchange)),
        wait_ns=int(waits.sum()),
        longest_wait=names[int(waits.argmax())] if waits.any() else "",
        longest_wait_ns=int(waits.max()),
        most_often_last=names[int(last.argmax())] if last.any() else "",
        times_last=int(last.max()),
        waits_ns={title: int(waits[place]) for place, title in enumerate(names) if took_part[:, place].any()},
    )
