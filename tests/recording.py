"""Recordings: what tests ask for, and a buffer filled by hand with exact times, no runtime and no clock."""

import contextlib
from dataclasses import fields
from typing import Any

import pytest

from mtprof_nb.capture.buffers.buffer import OP_FIELDS, Buffer, ThreadRecords
from mtprof_nb.capture.buffers.freezing import Vocabulary, freeze
from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.native.recorder_loading import why_not
from mtprof_nb.model.trace import Recorded, Trace, Track

#: All that a recording can be asked for.
EVERY_FLAG = {flag.name: True for flag in fields(Recorded)}
with contextlib.suppress(ImportError):
    import torch  # noqa: F401 - the recorder is looked for where torch is imported

#: The hook that needs a compiler, as a parameter of tests.
NATIVE = pytest.param(
    "native", marks=pytest.mark.skipif(why_not() is not None, reason=f"no native recorder: {why_not()}")
)
#: Marks a test that runs with each hook of PyTorch.
HOOKS = pytest.mark.parametrize("hook", ["kineto", NATIVE])


class StillClock(Clock):
    """Unix time and the monotonic clock agree: times in a trace are those put in."""

    def __init__(self) -> None:
        self.offset_ns = 0


def buffer(*extra: str, max_events: int = 1000, **flags: bool) -> Buffer:
    """An empty buffer whose ops have the fields `extra` beside the four that all have."""
    request = Request(recorded=Recorded(**flags), max_events=max_events, clock=StillClock(), trace_id="T")
    return Buffer(request, (*OP_FIELDS, *extra))


def new_thread(filled: Buffer, native_id: int = 1) -> ThreadRecords:
    """The records of a new thread in `filled`."""
    made = ThreadRecords()
    made.track = Track(native_id, f"thread {native_id}")
    filled.threads.append(made)
    return made


def op(into: ThreadRecords, name: str, start: int, end: int, *more: Any, device: str = "CPU") -> None:
    """Append one op; `more` are the extra fields in order."""
    into.ops.extend((name, device, start, end, *more))


def scope(into: ThreadRecords, name: str, start: int, end: int, is_async: bool = False, node: int = -1) -> None:
    """Append one scope that has ended; `node` was running as it began."""
    into.scopes.extend((name, start, end, None, is_async, node))


def frozen(filled: Buffer, **words: Any) -> Trace:
    """The trace of a buffer filled by hand."""
    return freeze(filled, Vocabulary(**words))


def column(trace: Trace, name: str) -> dict[str, Any]:
    """Values of one column by event name; the last one's where a name repeats."""
    return {trace.names[position]: value for position, value in zip(trace.name, getattr(trace, name), strict=True)}
