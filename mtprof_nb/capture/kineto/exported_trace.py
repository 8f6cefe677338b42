"""Kineto's results as a `Trace`: exported to a temporary file, which is read as any other Chrome trace."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.distributed import this_process
from mtprof_nb.capture.flops import Inputs, flops_by_inputs
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.samples.thread_names import running_threads
from mtprof_nb.errors import HookError, LoadError, warn
from mtprof_nb.model.intervals import order_of
from mtprof_nb.model.schema import Bool, Columns, Int64
from mtprof_nb.model.trace import OP, PYTHON, Allocations, Recorded, StackInterner, Trace, taken
from mtprof_nb.reading import read

#: Calls of Python functions that belong to a profiler.
_OWN = ("mtprof_nb/", "torch/profiler/", "torch/autograd/profiler.py", f"{Path(__file__).parents[2]}{os.sep}")


@dataclass
class Noted:
    """Facts that are noted beside Kineto's recording: names of threads, and how its clock went.

    Kineto maps its ticks to the interval between the wall times of its start and of its end. A wall
    clock that is corrected or set meanwhile stretches all times.
    """

    clock: Clock
    thread_names: dict[int, str] = field(default_factory=dict)
    #: The session's clock, and how far the wall clock was ahead: as the recording began and ended.
    _readings: list[tuple[int, int]] = field(default_factory=list)

    def note(self) -> None:
        """Note the threads and clocks of this moment, the beginning or the end of the recording."""
        self.thread_names |= running_threads()
        self._readings.append((self.clock.now_ns(), self.clock.wall_ahead_ns()))

    @property
    def has_turned(self) -> bool:
        """Whether the recording ended before it began, by the wall clock."""
        return len(self._readings) > 1 and sum(self._readings[-1]) <= sum(self._readings[0])

    def of_session(self, kineto_ns: Int64) -> Int64:
        """Kineto's times by the session's clock."""
        (began, ahead), (ended, ahead_later) = self._readings[0], self._readings[-1]
        since_start = kineto_ns - (began + ahead)
        by_wall = ended + ahead_later - began - ahead
        if by_wall:  # below zero where the clock was set back: that turns their order round
            since_start = (since_start * ((ended - began) / by_wall)).astype(np.int64)
        return began + since_start


def exported_trace(results: Any, torch: Any, request: Request, noted: Noted) -> Trace:
    """The trace of one window."""
    if noted.has_turned:
        warn("the system's clock was set back meanwhile: durations and stacks are lost, record again")
    trace, recorded = _by_session_clock(_read(results), noted), request.recorded
    made: Columns = {"processes": (this_process(),), "tracks": _named(trace, noted), "recorded": recorded}
    if recorded.with_flops:
        made["flops"] = _flops(trace, torch)
    made |= _asked_for(trace, recorded)
    shown = _shown(trace) if recorded.with_stack else trace.kind != PYTHON
    return _with_used_tracks(replace(trace, **made).take(shown))


def _asked_for(trace: Trace, recorded: Recorded) -> Columns:
    """The optional columns: those that nobody asked for are left out, and the others are there."""
    none = np.full(len(trace), -1, np.int32)
    found: Columns = {}
    if not recorded.record_shapes:
        found |= {"shape": None, "shapes": (), "dtypes": (), "strides": (), "values": None, "value_texts": ()}
    elif trace.shape is None:
        found |= {"shape": none, "values": none}
    if not recorded.with_stack:
        found |= {"stack": None, "stacks": None, "stack_is_forward": None}
    elif trace.stacks is not None:
        frames = tuple(frame._replace(file=_whole_path(frame.file)) for frame in trace.stacks.frames)
        found["stacks"] = replace(trace.stacks, frames=frames)
    else:
        found |= {"stack": none, "stacks": StackInterner().tree(), "stack_is_forward": none >= 0}
    if not recorded.with_modules:
        found |= {"module": None, "modules": ()}
    elif trace.module is None:
        found["module"] = none
    if recorded.profile_memory and trace.allocations is None:
        held = np.where(trace.kind == OP, 0, np.int64(-1))
        found |= {"allocations": Allocations.joined([]), "memory_before": held, "memory_after": held}
    return found


@cache
def _whole_path(file: str) -> str:
    """The path of a file that Kineto names from a folder of `sys.path` on."""
    if file.startswith("<") or Path(file).is_absolute():
        return file
    paths = (Path(folder or Path.cwd(), file) for folder in sys.path)
    return next((str(path) for path in paths if path.is_file()), file)


def _with_used_tracks(trace: Trace) -> Trace:
    """`trace` without the threads that have no event, such as a notebook's own threads."""
    used = np.unique(trace.track)
    position = np.full(len(trace.tracks) + 1, -1, np.int32)
    position[used] = np.arange(len(used))
    records = trace.allocations
    return replace(
        trace,
        tracks=tuple(trace.tracks[one] for one in used.tolist()),
        track=position[trace.track],
        allocations=None if records is None else replace(records, track=position[records.track]),
    )


def _read(results: Any) -> Trace:
    with tempfile.TemporaryDirectory(prefix="mtprof_nb-") as folder:
        file = Path(folder, "trace.json")
        results.save(str(file))
        try:
            # Kineto writes the texts of the user's scopes as they are, quotes included.
            return read(file, partial=True)
        except (LoadError, OSError) as error:
            msg = f"the recording is lost, for torch.profiler's file of it cannot be read: {error}; free space there"
            raise HookError(msg) from error


def _by_session_clock(trace: Trace, noted: Noted) -> Trace:
    start_ns, end_ns = noted.of_session(trace.start_ns), noted.of_session(trace.end_ns)
    moved: Columns = {"start_ns": start_ns, "duration_ns": np.maximum(end_ns - start_ns, 0)}
    if trace.allocations is not None:
        moved["allocations"] = replace(trace.allocations, time_ns=noted.of_session(trace.allocations.time_ns))
    order = order_of(start_ns, moved["duration_ns"])
    return replace(trace, **moved if order is None else taken(vars(trace) | moved, order))


def _named(trace: Trace, noted: Noted) -> tuple[Any, ...]:
    names = noted.thread_names
    return tuple(one._replace(name=names.get(one.native_id, one.name)) for one in trace.tracks)


def _flops(trace: Trace, torch: Any) -> Int64:
    """Operations of each op by its inputs; one inside an op with a count is counted by that."""
    if trace.shape is None or trace.values is None:
        return np.full(len(trace), -1, np.int64)
    inputs = Inputs(trace.shape, trace.shapes, trace.dtypes)
    flops = flops_by_inputs(torch, trace, inputs, (trace.values, trace.value_texts))
    intervals = ThreadIntervals(trace.start_ns, trace.end_ns, trace.track)
    return np.where(intervals.parents(flops >= 0) >= 0, -1, flops)


def _shown(trace: Trace) -> Bool:
    """All events but Python calls of the profiler or on its behalf, and those of threads without ops."""
    is_call = trace.kind == PYTHON
    parents = ThreadIntervals(trace.start_ns, trace.end_ns, trace.track).parents(is_call)
    own, serving = is_call & trace.where_name(lambda call: call.startswith(_OWN)), trace.where_name(_is_serving)
    while (more := serving & ~own & (parents >= 0) & own[parents]).any():
        own |= more
    shown: Bool = ~is_call | (~own & np.isin(trace.track, trace.track[~is_call]))
    return shown


def _is_serving(call: str) -> bool:
    """Whether a call, `file(line): function`, is of C, of the standard library or of torch."""
    first = call.partition("(")[0].replace("\\", "/").partition("/")[0].removesuffix(".py")
    return call.startswith("<") or first == "torch" or first in sys.stdlib_module_names
