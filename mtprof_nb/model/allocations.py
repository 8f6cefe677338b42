"""`Allocations`: the allocator's records of a recording."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.schema import POINTS_TO_EVENT, TIMES, Int8, Int32, Int64, PointsInto, Record, concatenated


@dataclass(frozen=True, eq=False)
class Allocations(Record):
    """Allocator events in order of time: a release has negative `nbytes`."""

    time_ns: Annotated[Int64, TIMES]
    nbytes: Int64
    #: Bytes held on that device after the event, of those that were allocated in the same recording.
    total: Int64
    #: Identifies the block; 0 where the runtime does not tell.
    address: Int64
    #: The innermost event of the same thread during which it happened, or -1.
    event: Annotated[Int32, POINTS_TO_EVENT]
    track: Annotated[Int32, PointsInto("tracks")]
    device: Annotated[Int8, PointsInto("devices", always=True)]
    device_index: Int8
    #: Bytes the allocator had reserved of its device after the event; None where it reserves nothing.
    reserved: Int64 | None = None
    #: The stack that allocated outside any op, a node of `Trace.stacks`; -1 for all others.
    stack: Annotated[Int32 | None, PointsInto("stacks")] = None

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, rows: npt.ArrayLike) -> Allocations:
        order = np.asarray(rows)
        return replace(self, **{name: column[order] for name, column in self.columns.items()})

    @classmethod
    def joined(cls, parts: Iterable[Allocations]) -> Allocations:
        """The records of all parts in order of time; of one moment, those of the earlier part first."""
        whole = cls(**concatenated(cls, [vars(part) for part in parts]))
        return whole.take(np.argsort(whole.time_ns, kind="stable"))
