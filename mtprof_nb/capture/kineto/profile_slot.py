"""The interpreter's one profile function (`sys.setprofile`): Kineto's Python tracer needs it, cProfile may use it."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.errors import warn
from mtprof_nb.model.trace import PYTHON, Trace


class ProfileSlot:
    """Watches the profile function from the start of a recording to its end."""

    def __init__(self) -> None:
        self._ours: Any = None
        self._theirs: Any = None
        self._thread = 0
        self._is_lost = False

    def is_free(self) -> bool:
        """Whether no other profiler of Python is active; warns where one is, for Kineto would end its recording."""
        if sys.getprofile() is None and threading.getprofile() is None:
            return True
        warn(
            "stacks and modules are not recorded: another profiler of Python, such as cProfile, is active and would be "
            "ended by Kineto's; stop it first, or use hook='dispatch'"
        )
        return False

    def started(self) -> None:
        """Note Kineto's profile function, now that it records."""
        self._thread, self._ours = threading.get_native_id(), sys.getprofile()

    def stopping(self) -> None:
        """Note whether another profiler has replaced it since."""
        now, ours, self._ours = sys.getprofile(), self._ours, None
        self._is_lost = ours is not None and now is not ours and threading.get_native_id() == self._thread
        self._theirs = now if self._is_lost else None

    def stopped(self) -> None:
        """Install the other profiler again, which Kineto's end has removed."""
        theirs, self._theirs = self._theirs, None
        if theirs is None or sys.getprofile() is not None:
            return
        if callable(theirs):
            sys.setprofile(theirs)
        else:  # cProfile's object, whose profile function is in C
            theirs.enable()

    def until_lost(self, trace: Trace) -> Trace:
        """`trace` without stacks and modules from after another profiler has replaced Kineto's profile function."""
        if not (self._is_lost and len(trace)):
            return trace
        warn("another profiler of Python was started meanwhile: stacks and modules from then on are missing")
        here = np.array([thread.native_id == self._thread for thread in trace.tracks], np.bool_)[trace.track]
        calls = trace.start_ns[here & (trace.kind == PYTHON)]
        # The last call that Kineto saw is the one that installed the other profiler.
        lost = here & (trace.start_ns > calls.max(initial=0))
        blank = {name: getattr(trace, name) for name in ("stack", "module")}
        blank = {name: np.where(lost, -1, column) for name, column in blank.items() if column is not None}
        return replace(trace, **blank)
