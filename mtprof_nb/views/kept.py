"""Charts of a trace that are gone with it."""

from __future__ import annotations

from weakref import ref

from mtprof_nb.model.trace import Trace


class OfTrace:
    """Something made of a trace that does not keep the trace alive, so that it can be kept beside it."""

    def __init__(self, trace: Trace) -> None:
        self._trace = ref(trace)

    @property
    def trace(self) -> Trace:
        """The trace; `ReferenceError` once nobody holds it any more."""
        found = self._trace()
        if found is None:
            msg = "the trace of this chart is gone: keep the profile as long as its charts are drawn"
            raise ReferenceError(msg)
        return found
