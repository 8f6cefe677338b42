"""Kineto's finished events as columns. Each accessor costs 100 ns an event: only those that a flag needs are called."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.building.autograd_nodes import ForwardThreads
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.capture.kineto.busy_threads import Unfinished
from mtprof_nb.capture.samples.thread_names import name_of_native_thread
from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.schema import Bool, Int8, Int64
from mtprof_nb.model.trace import OP, PYTHON, SCOPE, Track

#: Converts Kineto's times to those without a jump of the wall clock.
Straighten = Callable[[Int64], Int64]
#: Kineto's thread number of frames of a thread that slept throughout, such as those of a notebook's kernel.
NO_THREAD = 2**64 - 1
#: How many events are read at a time.
PART = 512
#: Accessors that every recording needs.
_COLUMNS: dict[str, npt.DTypeLike] = {
    "name": np.int32,
    "start_ns": np.int64,
    # Read unsigned: an event that begins on another thread as the recording ends may have a negative duration.
    "duration_ns": np.uint64,
    "start_thread_id": np.uint64,
    "sequence_nr": np.int64,
    "scope": np.int8,
}
#: An event with a start so long before the recording has no valid time.
_EARLY_NS = 1_000_000_000
_USER_SCOPE = 7
_OP_SCOPE, _BACKWARD_SCOPE = 0, 1


def legible(function: str) -> str:
    """A function's name, or "?" where the text at the address that Kineto kept is no name any more."""
    is_name = function.isidentifier() or (
        function.startswith("<") and function.endswith(">") and function.isprintable()
    )
    return function if is_name else "?"


def read_text(accessor: Callable[[Any], str], objects: Sequence[Any]) -> list[str]:
    """A text of each object. The name of code that is gone may be any bytes, not UTF-8."""
    try:
        return list(map(accessor, objects))
    except UnicodeDecodeError:
        return [_decoded(accessor, one) for one in objects]


def _decoded(accessor: Callable[[Any], str], one: Any) -> str:
    try:
        return accessor(one)
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


@dataclass(frozen=True, kw_only=True)
class KinetoColumns(RecordedEvents):
    """The events of one Kineto result without allocator records; the `number` of a thread is Kineto's own."""

    events: Sequence[Any]
    #: How many events were not read for lack of time.
    unread: int

    def unfinished(self) -> list[Unfinished]:
        """Ops and scopes that had not ended when the recording did: Kineto gives them its end, and no end thread."""
        end_ns = self.end_ns
        last = np.flatnonzero((end_ns == end_ns.max(initial=0)) & ~self.is_python)
        return [
            Unfinished(self.threads[self.thread[row]].native_id, self.names[self.name[row]], bool(self.is_scope[row]))
            for row in last.tolist()
            if not self.events[row].end_thread_id()
        ]


def _read(
    events: Sequence[Any], kineto_event: Any, columns: dict[str, npt.NDArray[Any]], timeout_s: float | None
) -> tuple[int, tuple[str, ...]]:
    """Fill `columns` for as many events as time allows; returns how many, and the table of names.

    All accessors are called for one part of the events before the next part, which then stays in the cache.
    """
    positions: defaultdict[str, int] = defaultdict(count().__next__)
    done = 0
    deadline = None if timeout_s is None else time.perf_counter() + timeout_s
    while done < len(events) and (deadline is None or time.perf_counter() < deadline):
        part = events[done : done + PART]
        for accessor, column in columns.items():
            if accessor == "name":
                names = map(positions.__getitem__, read_text(kineto_event.name, part))
                column[done : done + len(part)] = np.fromiter(names, column.dtype, len(part))
            else:
                column[done : done + len(part)] = _integers(getattr(kineto_event, accessor), part, column.dtype)
        done += len(part)
    return done, tuple(positions)


def _integers(accessor: Callable[[Any], int], part: Sequence[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        return np.fromiter(map(accessor, part), dtype, len(part))
    except OverflowError:  # an event that another thread was just beginning may have any value
        return np.array([int(accessor(event)) & (2**64 - 1) for event in part], np.uint64).astype(dtype)


def _kept(read: dict[str, npt.NDArray[Any]], names: tuple[str, ...], began_ns: int) -> Bool:
    """The events that are kept.

    Left out are allocator records, markers of `record_function`, events of sleeping threads, and events that another
    thread was just beginning, which have no time yet.
    """
    is_hidden = [name.startswith(("[memory]", "profiler::_record_function")) for name in names]
    kept: Bool = (read["start_thread_id"] != NO_THREAD) & (read["start_ns"] > began_ns - _EARLY_NS)
    return kept & ~np.array(is_hidden)[read["name"]] if any(is_hidden) else kept


def _is_async(events: Sequence[Any], scope: Int8) -> Bool:
    """Whether each event ended on another thread, or after its call had returned; only a scope can."""
    found = np.zeros(len(events), np.bool_)
    for row in np.flatnonzero((scope != _OP_SCOPE) & (scope != _BACKWARD_SCOPE)).tolist():
        event = events[row]
        # An event that had not ended by the end of the recording has 0 as its end thread.
        found[row] = event.is_async() or event.end_thread_id() not in (0, event.start_thread_id())
    return found


def read_columns(
    results: Any,
    kineto_event: Any,
    *,
    with_python: bool,
    thread_names: dict[int, str],
    timeout_s: float | None = None,
    began_ns: int = 0,
    straighten: Straighten | None = None,
) -> KinetoColumns:
    """The columns that every recording needs, from `torch._C._autograd._ProfilerResult`."""
    events = results.events()
    read = {accessor: np.zeros(len(events), dtype) for accessor, dtype in _COLUMNS.items()}
    if with_python:
        read["is_python_function"] = np.zeros(len(events), np.bool_)
    done, names = _read(events, kineto_event, read, timeout_s)
    unread, events = len(events) - done, events[:done]
    read = {accessor: column[:done] for accessor, column in read.items()}
    kept = _kept(read, names, began_ns)
    if not kept.all():
        events = list(compress(events, kept.tolist()))
        read = {accessor: column[kept] for accessor, column in read.items()}
        used, read["name"] = np.unique(read["name"], return_inverse=True)
        names = tuple(names[position] for position in used.tolist())
    if with_python:
        names = tuple(one if one.isprintable() else f"{one.partition(': ')[0]}: ?" for one in names)
    start_ns, end_ns = read["start_ns"], read["start_ns"] + read["duration_ns"].view(np.int64)
    if straighten is not None:
        start_ns, end_ns = straighten(start_ns), straighten(end_ns)
    duration_ns = np.maximum(end_ns - start_ns, 0)
    order = order_of(start_ns, duration_ns)
    if order is not None:
        start_ns, duration_ns = start_ns[order], duration_ns[order]
        read = {accessor: column[order] for accessor, column in read.items()}
        events = [events[row] for row in order.tolist()]
    kineto_threads, first, thread = np.unique(read["start_thread_id"], return_index=True, return_inverse=True)
    is_scope = read["scope"] == _USER_SCOPE
    is_python = read.get("is_python_function", np.zeros(len(events), np.bool_))
    native = [_native_id(events, thread, number, at) for number, at in enumerate(first.tolist())]
    return KinetoColumns(
        events=events,
        name=read["name"],
        names=names,
        kind=np.select([is_scope, is_python], [SCOPE, PYTHON], OP).astype(np.int8),
        start_ns=start_ns,
        duration_ns=duration_ns,
        thread=thread.astype(np.int32),
        threads=tuple(
            Track(tid, thread_names.get(tid) or name_of_native_thread(tid), number=number)
            for tid, number in zip(native, kineto_threads.tolist(), strict=True)
        ),
        sequence_nr=read["sequence_nr"],
        is_backward_node=read["scope"] == _BACKWARD_SCOPE,
        is_async=_is_async(events, read["scope"]),
        unread=unread,
    )


def _native_id(events: Sequence[Any], thread: Int64, number: int, first: int) -> int:
    """The native id of a thread: that of its first event, unless this ran on a device and has a stream in its place."""
    if events[first].device_type().name != "CPU":
        on_thread = (events[row] for row in np.flatnonzero(thread == number).tolist())
        return next((event.device_resource_id() for event in on_thread if event.device_type().name == "CPU"), 0)
    native_id: int = events[first].device_resource_id()
    return native_id


def forward_threads(columns: KinetoColumns, kineto_event: Any) -> ForwardThreads:
    """Kineto's numbers of the threads on which nodes were made."""
    events, thread_of = columns.events, kineto_event.fwd_thread_id
    return lambda nodes: np.fromiter((thread_of(events[row]) for row in nodes.tolist()), np.int64, len(nodes))
