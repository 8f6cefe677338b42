"""Collectives of a recording: calls in which all processes of a group take part, on devices or on the host."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from mtprof_nb.model.schema import Int64
from mtprof_nb.model.trace import COLLECTIVE, SCOPE, Trace

#: How the names of the scopes begin in which PyTorch starts a collective: on devices, and on the host by Gloo.
_ON_HOST = "gloo:"
SCOPES_OF_COLLECTIVES = ("nccl:", "hccl:", "xccl:", _ON_HOST)
#: Parts of names of exchanges between two processes.
_BETWEEN_TWO = ("send", "recv")
#: In these no process can end before all have begun. In a broadcast the sender can.
_WAITS_FOR_ALL = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier", re.IGNORECASE)


class CallKey(NamedTuple):
    """Name and group by which processes find each other's call: the n-th of one key is the same call on all."""

    name: str
    group: str

    @property
    def is_between_two(self) -> bool:
        """Whether it is no collective, but one process sends to another."""
        return any(part in self.name.lower() for part in _BETWEEN_TWO)

    @property
    def waits_for_all(self) -> bool:
        """Whether each process has to wait in it until all have come."""
        return _WAITS_FOR_ALL.search(self.name) is not None

    @property
    def title(self) -> str:
        """The name in one spelling: `all_reduce` for `allreduce`, `_all_gather_base` and `hcom_allReduce_`."""
        match = _WAITS_FOR_ALL.search(self.name)
        return _SPELLED.get(match[0].replace("_", "").lower(), match[0]) if match else self.name


_SPELLED = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
}


def rows_of_collectives(trace: Trace) -> Int64:
    """The calls of each process, as positions of events: those on its devices; where it has none, those on the host.

    Exchanges between two processes are among them.
    """
    on_device = trace.kind == COLLECTIVE
    on_host = (trace.kind == SCOPE) & trace.where_name(lambda name: name.startswith(_ON_HOST))
    if on_device.any() and on_host.any():
        process = trace.processes_of(trace.track)
        has_device = np.bincount(process[on_device], minlength=len(trace.processes)) > 0
        on_host &= ~has_device[process]
    return np.flatnonzero(on_device | on_host)


def call_keys(trace: Trace, rows: Int64) -> list[CallKey]:
    """The key of each of the collectives at positions `rows`."""
    known: dict[tuple[int, int], CallKey] = {}
    places = np.full(len(rows), -1) if trace.collective is None else trace.collective[rows]
    pairs = list(zip(places.tolist(), trace.name[rows].tolist(), strict=True))
    for place, name in set(pairs):
        known[place, name] = _key(trace, place, name)
    return [known[pair] for pair in pairs]


def _key(trace: Trace, place: int, name: int) -> CallKey:
    """The name and group that the runtime reports; of a kernel without them, its name without parameters."""
    if place >= 0:
        return CallKey(trace.collectives[place].name, trace.collectives[place].group)
    return CallKey(trace.names[name].removeprefix(_ON_HOST).partition("(")[0].partition("<")[0], "")
