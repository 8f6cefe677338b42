"""A cache of results for each trace, dropped with the trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from mtprof_nb.model.trace import Trace

P = ParamSpec("P")
R = TypeVar("R")


def once_a_trace(make: Callable[Concatenate[Trace, P], R]) -> Callable[Concatenate[Trace, P], R]:
    """Cache results of `make` by trace and arguments. A result must not refer to its trace and so keep it alive."""
    kept: WeakKeyDictionary[Trace, dict[Any, R]] = WeakKeyDictionary()

    @wraps(make)
    def once(trace: Trace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results, key = kept.setdefault(trace, {}), (args, *kwargs.items())
        if key not in results:
            results[key] = make(trace, *args, **kwargs)
        return results[key]

    return once
