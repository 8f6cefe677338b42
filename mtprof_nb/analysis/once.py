"""Results computed once for a trace, and dropped with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from mtprof_nb.model.trace import Trace

P = ParamSpec("P")
R = TypeVar("R")


def once_a_trace(make: Callable[Concatenate[Trace, P], R]) -> Callable[Concatenate[Trace, P], R]:
    """`make`, called once for each trace and arguments. A result that held its trace would keep it for ever."""
    kept: WeakKeyDictionary[Trace, dict[Any, R]] = WeakKeyDictionary()

    @wraps(make)
    def once(trace: Trace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results, key = kept.setdefault(trace, {}), (args, *kwargs.items())
        if key not in results:
            results[key] = make(trace, *args, **kwargs)
        return results[key]

    return once
