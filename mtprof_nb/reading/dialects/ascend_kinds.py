"""Ascend's `trace_view.json`: its processes say what a span is, for most spans have no category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Bool, Int8, Int64
from mtprof_nb.model.trace import COLLECTIVE, COPY, DEVICE_SCOPE, KERNEL, RUNTIME, SET, SYNC
from mtprof_nb.reading.columns.file_tracks import DeviceNumbers, Lane
from mtprof_nb.reading.dialects import kineto_kinds
from mtprof_nb.reading.dialects.kineto_kinds import LEFT_OUT
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.descriptions import Descriptions
from mtprof_nb.reading.spans.spans import Spans

_HARDWARE, _COMMUNICATION, _RUNTIME, _OVERLAP = "Ascend Hardware", "HCCL", "CANN", "Overlap Analysis"
_COMMUNICATIONS = (_COMMUNICATION, "Communication")
_PROGRAM = "Python"
_DEVICE_BITS = 31
_NAMES = {_HARDWARE, _COMMUNICATION, _RUNTIME, _OVERLAP}
#: Beginnings of names of tasks that move memory, and of tasks that wait.
_COPIES, _SETS = ("MEMCPY", "SDMA", "Memcpy"), ("MEMSET", "Memset")
_WAITS = ("EVENT_", "NOTIFY", "Notify", "Write Value", "CAPTURE_", "MODEL_", "PROFILER_", "PROFILING_")
_TASKS_OF_COLLECTIVES = ("SDMA", "Write Value", "Notify Wait", "RDMASend", "Reduce_Inline", "Memcpy")


def _device(pid: Int64) -> Int64:
    """The index of a device: the last bits of the number that Ascend's profiler gives to a process."""
    return pid & _DEVICE_BITS


NUMBERS = DeviceNumbers("NPU", _device)


def with_threads_of_program(lanes: Sequence[Lane], said: Descriptions) -> list[Lane]:
    """The lanes, in which threads of the runtime are the threads of the program that they are."""
    program = next((pid for pid, name in said.process_names.items() if name == _PROGRAM), None)
    if program is None:
        return list(lanes)
    return [
        (program, tid) if _is_key(pid) and said.process_names.get(pid) == _RUNTIME else (pid, tid) for pid, tid in lanes
    ]


def is_ascend(said: Descriptions) -> bool:
    """Whether a file was written by Ascend's profiler."""
    return any(name in _NAMES for name in said.process_names.values())


def kinds(collector: Collector, spans: Spans, said: Descriptions, tally: Counter[str]) -> Int8:
    """The kind of each span, `LEFT_OUT` for spans that repeat others."""
    found = kineto_kinds.kinds(collector, spans, said, Counter())
    process = [said.process_names.get(pid, "") if _is_key(pid) else "" for pid, _ in collector.lanes]
    of_span = np.array([_PROCESSES.index(name) if name in _PROCESSES else -1 for name in process] or [-1])[
        spans["lane"]
    ]
    for number, name in enumerate(_PROCESSES):
        rows = np.flatnonzero(of_span == number)
        if name == _HARDWARE:
            found[rows] = np.array([_task(text) for text in collector.names], np.int8)[spans["name"][rows]]
        elif name in _COMMUNICATIONS:
            found[rows] = np.array([_communication(text) for text in collector.names], np.int8)[spans["name"][rows]]
        elif name == _RUNTIME:
            found[rows] = RUNTIME
        elif name == _OVERLAP:
            found[rows] = LEFT_OUT
            tally["Rows of the vendor's overlap analysis, left out"] += len(rows)
    if (found == COLLECTIVE).any():
        # Tasks that a collective consists of: its own span has their time.
        found[_named(collector, spans, _TASKS_OF_COLLECTIVES) & (of_span == _PROCESSES.index(_HARDWARE))] = DEVICE_SCOPE
    queue = [category in ("enqueue", "dequeue") for category in collector.categories]
    found[np.array(queue or [False], np.bool_)[spans["category"]]] = RUNTIME
    return found


_PROCESSES = (_HARDWARE, *_COMMUNICATIONS, _RUNTIME, _OVERLAP)


def _task(name: Any) -> int:
    text = str(name)
    if text.startswith(_COPIES):
        return COPY
    if text.startswith(_SETS):
        return SET
    return SYNC if text.startswith(_WAITS) else KERNEL


def _communication(name: Any) -> int:
    """A collective, or one of the tasks that it consists of, which are no work besides."""
    return COLLECTIVE if str(name).lower().startswith(("hcom", "hccl")) else DEVICE_SCOPE


def _named(collector: Collector, spans: Spans, names: tuple[str, ...]) -> Bool:
    found: Bool = np.array([name in names for name in collector.names] or [False], np.bool_)[spans["name"]]
    return found


def _is_key(pid: Any) -> bool:
    return isinstance(pid, int | str)
