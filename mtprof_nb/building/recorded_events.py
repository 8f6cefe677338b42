"""Events as a recorder or a file has them, before they are linked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.collective_calls import SCOPES_OF_COLLECTIVES
from mtprof_nb.model.schema import Bool, Int8, Int32, Int64
from mtprof_nb.model.trace import OP, PYTHON, SCOPE, STEP_PREFIX, Track


@dataclass(frozen=True, kw_only=True)
class RecordedEvents:
    """All events in the order of a `Trace`; those of devices stand on tracks of their own."""

    name: Int32
    names: tuple[str, ...]
    #: As in a `Trace`, but that of collectives, which the builder finds.
    kind: Int8
    start_ns: Int64
    duration_ns: Int64
    thread: Int32
    #: A track for each thread or stream; the `number` of a thread is the runtime's own.
    threads: tuple[Track, ...]
    sequence_nr: Int64
    is_backward_node: Bool
    #: Scopes that ended on another thread, or after their call had returned.
    is_async: Bool

    def __len__(self) -> int:
        return len(self.start_ns)

    @cached_property
    def end_ns(self) -> Int64:
        return self.start_ns + self.duration_ns

    @property
    def intervals(self) -> ThreadIntervals:
        return ThreadIntervals(self.start_ns, self.end_ns, self.thread)

    @cached_property
    def is_op(self) -> Bool:
        are_ops: Bool = self.kind == OP
        return are_ops

    @cached_property
    def is_scope(self) -> Bool:
        are_scopes: Bool = self.kind == SCOPE
        return are_scopes

    @cached_property
    def is_python(self) -> Bool:
        are_calls: Bool = self.kind == PYTHON
        return are_calls

    def scopes_of(self, prefix: str) -> Bool:
        """The scopes whose name begins so."""
        return self.is_scope & self.where_name(lambda name: name.startswith(prefix))

    def where_name(self, accepts: Callable[[str], bool]) -> Bool:
        """The events whose name `accepts`, which is called once for each distinct name."""
        accepted = np.fromiter(map(accepts, self.names), np.bool_, len(self.names))
        return accepted[self.name] if len(accepted) else np.zeros(len(self), np.bool_)

    def crossing_scopes(self) -> Bool:
        """Scopes of one thread that cross, such as those of interleaved generators.

        The scope of a collective ends with it, on a thread that waits for it, and may cross the op that started it:
        what only such a scope crosses is nested.
        """
        scopes = self.is_scope & ~self.is_async & ~self.scopes_of(STEP_PREFIX)
        of_collectives = scopes & self.where_name(lambda name: name.startswith(SCOPES_OF_COLLECTIVES))
        if not of_collectives.any():
            return self.intervals.crossing(scopes)
        ops = self.is_op & ~self.is_async
        outlasting = of_collectives & (self.intervals.crossing(of_collectives | ops) | self.intervals.crossing(scopes))
        return outlasting | self.intervals.crossing(scopes & ~outlasting)
