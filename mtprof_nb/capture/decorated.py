"""Runs each call of a function in a context manager; coroutines and generators to their end."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def decorated(context: AbstractContextManager[Any], function: Callable[P, R]) -> Callable[P, R]:
    """`function` in `context`, which is entered by a call, or by the first step of a coroutine or generator."""
    wrapper = _calling
    for is_kind, of_kind in _KINDS:
        if is_kind(function):
            wrapper = of_kind
    return cast("Callable[P, R]", functools.wraps(function)(wrapper(context, function)))


def _calling(context: AbstractContextManager[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    return call


def _awaiting(context: AbstractContextManager[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with context:
            return await function(*args, **kwargs)

    return coroutine


def _generating(context: AbstractContextManager[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def generator(*args: Any, **kwargs: Any) -> Any:
        with context:
            return (yield from function(*args, **kwargs))

    return generator


def _generating_async(context: AbstractContextManager[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    async def generator(*args: Any, **kwargs: Any) -> Any:
        with context:
            async for item in function(*args, **kwargs):
                yield item

    return generator


_KINDS = (
    (inspect.iscoroutinefunction, _awaiting),
    (inspect.isgeneratorfunction, _generating),
    (inspect.isasyncgenfunction, _generating_async),
)
