"""Replaces the code of an existing function, for every holder of the function, compiled code included."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def copy_of(function: FunctionType) -> FunctionType:
    """A copy of `function` as it is now; later changes of its code do not reach the copy."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)


class CodeSwap:
    """Runs the code of `other` wherever `function` is called.

    The code runs with the globals of `function`. It gets its state as its last parameters, whose defaults are `state`.
    Neither function may have a closure.
    """

    def __init__(self, function: FunctionType, other: Callable[..., Any], state: tuple[Any, ...]) -> None:
        self._function = function
        self._own = function.__code__, function.__defaults__
        self._code = other.__code__
        self._state = state

    def install(self) -> None:
        """Swap. The defaults come first, because the other code needs them."""
        self._function.__defaults__ = self._state
        self._function.__code__ = self._code

    def remove(self) -> None:
        """Swap back; a second call does nothing."""
        if self._function.__code__ is self._code:
            self._function.__code__, self._function.__defaults__ = self._own
