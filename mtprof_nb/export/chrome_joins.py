"""Numbers by which other tools join events: of ops, of launches, of Python calls and their parents."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.python_calls import python_numbers
from mtprof_nb.export.chrome_text import RowTexts
from mtprof_nb.export.fixed_width import Words, choice, constant, integers
from mtprof_nb.model.trace import ENGINE_PREFIX, OP, PYTHON, RUNTIME, SCOPE, Bool, Int64, Trace


class Joins:
    """Columns of the numbers by which other tools join events, under Kineto's keys."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._external = _external_ids(trace)
        self._launch = _launch_numbers(trace, int(self._external.max(initial=0)))
        native = [thread.native_id for thread in trace.tracks]
        self._runtimes = [f',"runtime_name":"dispatch_kernel","runtime_tid":{tid}' for tid in native]
        self._native = np.array(native or [0], np.int64)
        self._forward_thread = _forward_threads(trace)
        self._python = python_numbers(trace) if (trace.kind == PYTHON).any() else None

    def columns(self, rows: Int64) -> list[Words]:
        """The numbers of `rows`; blank in rows without one."""
        trace = self._trace
        kind, own, external = trace.kind[rows], trace.correlation_id[rows], self._external[rows]
        columns = [*optional("External id", external, external <= 0), *optional("correlation_id", own, kind != OP)]
        if (kind == OP).any():
            columns.append(choice(self._runtimes, np.where(kind == OP, trace.track[rows], -1)))
        columns += self._record_functions(rows)
        if trace.launcher is not None:
            columns += self._of_devices(rows)
        return columns + self._of_python(rows)

    def rare(self, rows: Int64) -> RowTexts:
        """The numbers that few events have, as texts: columns of fixed width would be mostly blank."""
        texts_of_rows = np.full(len(rows), b"", object)
        keys = {"Sequence number": self._trace.sequence_nr, "Fwd thread id": self._forward_thread}
        if self._python is not None:
            keys["Python module id"] = self._python.module.astype(np.int64)
        for key, numbers in keys.items():
            there = np.flatnonzero(numbers[rows] >= 0)
            texts = [f',"{key}":{number}'.encode("ascii") for number in numbers[rows[there]].tolist()]
            texts_of_rows[there] += np.array(texts, object)
        column: list[bytes] = texts_of_rows.tolist()
        return column

    def _record_functions(self, rows: Int64) -> list[Words]:
        """The number of the call in an execution trace; 0 without one, as in Kineto."""
        is_called = (self._trace.kind[rows] == OP) | (self._trace.kind[rows] == SCOPE)
        numbers = self._trace.record_function
        if numbers is not None:
            return optional("Record function id", numbers[rows], ~is_called)
        return [choice([',"Record function id":0'], is_called.view(np.int8) - 1)] if is_called.any() else []

    def _of_devices(self, rows: Int64) -> list[Words]:
        launch, on_host = self._launch[rows], ~self._trace.on_device[rows]
        return [
            *optional("correlation", launch, launch <= 0),
            *optional("device", self._trace.device_index[rows].astype(np.int64), on_host),
            *optional("stream", self._native[self._trace.track[rows]], on_host),
        ]

    def _of_python(self, rows: Int64) -> list[Words]:
        if self._python is None:
            return []
        own, parent = (column[rows].astype(np.int64) for column in (self._python.own, self._python.parent))
        if (own < 0).all():
            return []
        key = choice([',"Python parent id":', ',"Python parent id":null'], np.where(own < 0, -1, parent < 0))
        return [*optional("Python id", own, own < 0), key, integers(parent, parent < 0)]


def optional(key: str, values: Int64, absent: Bool) -> list[Words]:
    """`key` and value in each row, blank where `absent`; no columns if all are absent."""
    if absent.all():
        return []
    if not absent.any():
        return [constant(f',"{key}":'), integers(values)]
    return [choice([f',"{key}":'], -absent.view(np.int8)), integers(values, absent)]


def _external_ids(trace: Trace) -> Int64:
    """Numbers of ops, then of scopes; an event on a device has the number of the op or scope that launched it."""
    ids = trace.correlation_id.copy()
    scopes = trace.kind == SCOPE
    ids[scopes] = int(ids.max(initial=0)) + np.arange(1, int(scopes.sum()) + 1)
    if trace.launcher is not None:
        launched = (ids == 0) & (trace.launcher >= 0)
        ids[launched] = ids[trace.launcher[launched]]
    return ids


def _launch_numbers(trace: Trace, above: int) -> Int64:
    """A number for each runtime call and the device events that it launched; 0 for all other events.

    No op has one of them: older recordings repeat the number of a launch in place of the op's.
    """
    is_call = trace.kind == RUNTIME
    numbers: Int64 = (np.cumsum(is_call) + above) * is_call
    return numbers if trace.launch is None else np.where(trace.launch >= 0, numbers[trace.launch], numbers)


def _forward_threads(trace: Trace) -> Int64:
    """For a node of the backward pass the thread of its forward op; for a forward op 0, as in Kineto; else -1."""
    numbers = [track.number if track.number >= 0 else track.native_id for track in trace.tracks]
    number = np.array(numbers or [0], np.int64)
    names = set(trace.names)
    node = trace.where_name(lambda name: name.startswith(ENGINE_PREFIX) or ENGINE_PREFIX + name in names)
    known = np.where(trace.forward >= 0, number[trace.track[trace.forward]], -1)
    threads: Int64 = np.where(trace.sequence_nr < 0, -1, np.where(node, known, 0))
    return threads
