"""`Recording`: a recording that was loaded."""

from __future__ import annotations

from mtprof_nb.errors import shortened
from mtprof_nb.model.trace import Trace
from mtprof_nb.results.recording_results import Results


class Recording(Results):
    """Tables, charts and files of a trace, as a finished `profile` has them. `load` returns one."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """The whole recording."""
        return self._trace

    @property
    def name(self) -> str:
        """The `name` of the profile that recorded it, or the name of its file."""
        return self._trace.label

    def __repr__(self) -> str:
        count = len(self._trace.processes)
        processes = f", {count} processes" if count > 1 else ""
        return f"<Recording {shortened(self.name)!r}: {len(self._trace):,} events{processes}>"
