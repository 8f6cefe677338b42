"""A cache of results for each trace, dropped with the trace, or when other traces are used."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from mtprof_nb.model.trace import Trace

P = ParamSpec("P")
R = TypeVar("R")

#: Results need twice the memory of their trace. They are kept for the traces that were used last: at least two, which
#: can be compared, and more while all of them together have at most this many events.
LEAST_TRACES, MOST_EVENTS = 2, 1_000_000
#: Results by trace, the trace that was used last at the end.
_kept: WeakKeyDictionary[Trace, dict[Any, Any]] = WeakKeyDictionary()
_lock = RLock()


def once_a_trace(make: Callable[Concatenate[Trace, P], R]) -> Callable[Concatenate[Trace, P], R]:
    """Cache results of `make` by trace and arguments. A result must not refer to its trace and so keep it alive."""

    @wraps(make)
    def once(trace: Trace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results, key = _results_of(trace), (make, args, *kwargs.items())
        if key in results:
            known: R = results[key]
            return known
        made = make(trace, *args, **kwargs)
        # Other traces may have been used meanwhile.
        _results_of(trace)[key] = made
        return made

    return once


def _results_of(trace: Trace) -> dict[Any, Any]:
    """The results of a trace, which is now the one that was used last."""
    with _lock:
        known = _kept.pop(trace, None)
        results = _kept[trace] = {} if known is None else known
        if known is None:
            _drop_older()
        return results


def _drop_older() -> None:
    events = 0
    for number, trace in enumerate(reversed(list(_kept))):
        events += len(trace)
        if number >= LEAST_TRACES and events > MOST_EVENTS:
            del _kept[trace]
