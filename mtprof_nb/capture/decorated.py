"""Runs each call of a function in a context manager; coroutines and generators to their end."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def decorated(
    make: Callable[[], AbstractContextManager[Any]], function: Callable[P, R], *, with_generators: bool
) -> Callable[P, R]:
    """`function` in the context that `make` returns, entered by a call, or by the first step of a coroutine.

    `with_generators`: also by the first step of a generator; otherwise its context ends with the call that makes it.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with make():
            return await cast("Any", function)(*args, **kwargs)

    def generator(*args: Any, **kwargs: Any) -> Any:
        with make():
            return (yield from cast("Any", function)(*args, **kwargs))

    async def async_generator(*args: Any, **kwargs: Any) -> Any:
        with make():
            async for item in cast("Any", function)(*args, **kwargs):
                yield item

    wrapper: Callable[..., Any] = call
    if inspect.iscoroutinefunction(function):
        wrapper = coroutine
    elif with_generators and inspect.isgeneratorfunction(function):
        wrapper = generator
    elif with_generators and inspect.isasyncgenfunction(function):
        wrapper = async_generator
    return cast("Callable[P, R]", functools.wraps(function)(wrapper))
