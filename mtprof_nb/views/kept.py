"""Charts of a trace, made once and gone with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from mtprof_nb.trace import Trace

Chart = TypeVar("Chart")


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


class Kept(Generic[Chart]):
    """Makes a chart of a trace when it is first wanted, with Python frames or without."""

    def __init__(self, make: Callable[[Trace, bool], Chart]) -> None:
        self._make = make
        self._of_trace: WeakKeyDictionary[Trace, dict[bool, Chart]] = WeakKeyDictionary()

    def __call__(self, trace: Trace, python: bool = False) -> Chart:
        """The chart of `trace`."""
        made = self._of_trace.setdefault(trace, {})
        if python not in made:
            made[python] = self._make(trace, python)
        return made[python]
