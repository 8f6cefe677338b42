"""A base for charts that are cached for their trace, and dropped with it."""

from __future__ import annotations

from weakref import ref

from mtprof_nb.model.trace import Trace


class WeakTraceHolder:
    """Refers to a trace without keeping it alive: a cache of the trace can then hold the object."""

    def __init__(self, trace: Trace) -> None:
        self._trace = ref(trace)

    @property
    def trace(self) -> Trace:
        """The trace; `ReferenceError` once it was deleted."""
        trace = self._trace()
        if trace is None:
            msg = "the trace of this chart was deleted: keep the profile as long as you draw its charts"
            raise ReferenceError(msg)
        return trace
