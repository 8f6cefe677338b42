"""The enter and exit points of MindTorch v2 and Candle, which their dispatchers call around each kernel.

Many modules hold these three functions, in Candle compiled ones. So the functions stay, and their code is swapped.
`_enabled`, `_enter` and `_exit` run with the globals of the runtime's own profiler: next to its `_ACTIVE_SESSION` they
may use only their parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from mtprof_nb.capture.buffers.buffer import Buffer
from mtprof_nb.errors import HookError

#: The runtime's own recording, if there is one.
_ACTIVE_SESSION: Any = None
#: Values of an op that are read before it, in the order of the buffer's fields.
ReadFacts = Callable[[str, Any, Any, Any], list[Any]]


def _enabled() -> bool:
    return True


def _enter(
    name: str,
    dispatch_device: Any,
    args: Any,
    kwargs: Any,
    _sink: Any,
    _now: Any,
    _number: Any,
    _limit: Any,
    _left_out: Any,
    _read: Any,
    _runtime_enter: Any,
) -> Any:
    theirs = None if _ACTIVE_SESSION is None else _runtime_enter(name, dispatch_device, args, kwargs)
    if _left_out and getattr(dispatch_device, "type", dispatch_device) in _left_out:
        return theirs
    if _number() > _limit:
        return theirs
    facts = None if _read is None else _read(name, dispatch_device, args, kwargs)
    # Seven values, as in the runtime's own token: its own exit can read it when ours is removed.
    return (_sink, name, dispatch_device, _now(), 0, facts, theirs)


def _exit(token: Any, _sink: Any, _now: Any, _local: Any, _held: Any, _runtime_exit: Any) -> None:
    end = _now()
    if token is None or token[0] is not _sink:
        _runtime_exit(token)
        return
    _, name, device, start, _, facts, theirs = token
    if facts is None:
        _local.ops.extend((name, device, start, end))
    else:
        if _held is not None:
            facts.append(_held(device))
        _local.ops.extend((name, device, start, end, *facts))
    if theirs is not None:
        _runtime_exit(theirs)


class _Sink:
    """Marks a token as this recording's. Where the token outlives the recording, its op is dropped."""

    def __init__(self, runtime_exit: Callable[[Any], None]) -> None:
        self._runtime_exit = runtime_exit

    def append_event(self, event: Any) -> None:
        """Drop the op of a recording that has ended, and end the runtime's own. The runtime's exit calls this."""
        if event.metadata is not None:
            self._runtime_exit(event.metadata)


def _copy_of(function: FunctionType) -> FunctionType:
    """A copy of `function` as it is now; later changes of its code do not reach the copy."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)


class _CodeSwap:
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


class EnterExitPoints:
    """The enter and exit points of one runtime. `HookError` where this version has none."""

    def __init__(self, profiler: ModuleType) -> None:
        names = ("is_profiler_enabled", "dispatch_op_enter", "dispatch_op_exit")
        functions = [function for name in names if isinstance(function := getattr(profiler, name, None), FunctionType)]
        if len(functions) < len(names) or not hasattr(profiler, "_ACTIVE_SESSION"):
            msg = (
                f"{profiler.__name__} has no enter and exit points to listen at: "
                "its version is not one that this hook knows; update mtprof_nb, or use the runtime's own profiler"
            )
            raise HookError(msg)
        self._enabled, self._enter, self._exit = functions
        self._swaps: list[_CodeSwap] = []
        #: The points themselves, for ops that the runtime runs without calling them.
        self.enter: Callable[..., Any] = lambda *_args: None
        self.exit: Callable[..., Any] = lambda _token: None

    def install(
        self, buffer: Buffer, left_out: frozenset[str], read: ReadFacts | None, held: Callable[[Any], int] | None
    ) -> None:
        """Record from now on. `read` gives an op's facts as it begins, `held` one more as it ends."""
        now, runtime_exit = time.perf_counter_ns, _copy_of(self._exit)
        sink = _Sink(runtime_exit)
        entering = (sink, now, buffer.number, buffer.limit, left_out, read, _copy_of(self._enter))
        leaving = (sink, now, buffer.local, held, runtime_exit)
        self.enter = lambda name, device, args, kwargs: _enter(name, device, args, kwargs, *entering)
        self.exit = lambda token: _exit(token, *leaving)
        # Exit first: no op may enter that cannot leave.
        self._swaps = [
            _CodeSwap(self._exit, _exit, leaving),
            _CodeSwap(self._enter, _enter, entering),
            _CodeSwap(self._enabled, _enabled, ()),
        ]
        for swap in self._swaps:
            swap.install()

    def remove(self) -> None:
        """Record no more; a second call does nothing."""
        while self._swaps:
            self._swaps.pop().remove()
