"""Watches torch's compiler during a window, and makes an event of each compilation.

What the compiler runs to trace a program, on tensors without values, is no work of the program: its
events are left out. Nothing is set that the compiler could notice.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mtprof_nb.building.compiling import TimedCompilation, added, with_compiled_steps
from mtprof_nb.capture.hook import EventTimes
from mtprof_nb.capture.imports import ImportWatcher
from mtprof_nb.capture.interrupts import run_all
from mtprof_nb.capture.patches import Patches
from mtprof_nb.capture.samples.python_stacks import StackEntry, Stacks, frames_of
from mtprof_nb.capture.torch_private import compiler_records
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Frame, Trace


@dataclass
class _Announced:
    """One compilation as torch announced it, by `time.perf_counter_ns`; -1 while it runs."""

    trigger: str
    compile_id: str
    thread: int
    stack: StackEntry
    start_ns: int
    end_ns: int = -1
    breaks: list[Any] = field(default_factory=list)


class WatchedCompilations(NamedTuple):
    """Compilations of a window, and torch's records of these and of earlier ones."""

    announced: list[_Announced]
    records: list[Any]
    earlier: list[Any]
    notes: tuple[str, ...]


class CompileWatch:
    """Listens to torch's compiler from `start` to `stop`, also if it is imported meanwhile."""

    #: The watch that was started last. Its end may have failed, as in a thread at the limit of
    #: recursion: the next start ends it.
    _last: ClassVar[CompileWatch | None] = None

    def __init__(self) -> None:
        self._patches = Patches()
        self._watcher = ImportWatcher([compiler_records.ANNOUNCER], self._install)
        self._announced: list[_Announced] = []
        self._stacks = Stacks()
        #: Torch forgets all but its last 64 records.
        self._records: dict[int, Any] = {}
        self._earlier: list[Any] = []

    def start(self) -> None:
        """Listen from now on."""
        if CompileWatch._last is not None:
            CompileWatch._last.remove()
        CompileWatch._last = self
        self._earlier = compiler_records.metrics()
        if compiler_records.ANNOUNCER in sys.modules:
            self._install()
        else:
            self._watcher.install()

    def _install(self, _name: str = "") -> None:
        announcer = compiler_records.announcer()
        if announcer is not None:
            self._patches.replace(announcer, compiler_records.ANNOUNCE, self._maker)

    def stop(self) -> WatchedCompilations:
        """End it. Harmless where it was not started."""
        self.remove()
        self._keep_records()
        notes = tuple(compiler_records.missing_names()) if self._announced or self._records else ()
        records = list(self._records.values())
        return WatchedCompilations(self._announced, records, self._earlier, notes)

    def remove(self) -> None:
        """Put everything back."""
        run_all(self._patches.undo, self._watcher.remove)
        if CompileWatch._last is self:
            CompileWatch._last = None

    def _keep_records(self) -> None:
        old = set(map(id, self._earlier))
        self._records |= {id(one): one for one in compiler_records.metrics() if id(one) not in old}

    def _maker(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def install_callbacks(*args: Any, **kwargs: Any) -> Any:
            return _Watched(self, original(*args, **kwargs), (*args, *kwargs.values()))

        return install_callbacks

    def begun(self, trigger: Any = None, compile_id: Any = "", *_: Any) -> _Announced:
        """Note that this thread begins a compilation."""
        self._keep_records()
        stack = self._stacks.capture(sys._getframe(2))
        breaks = list(compiler_records.graph_breaks())
        name, thread = str(getattr(trigger, "name", trigger)), threading.get_native_id()
        now_ns = time.perf_counter_ns()
        one = _Announced(name, str(compile_id), thread, stack, now_ns, breaks=breaks)
        self._announced.append(one)
        return one

    def ended(self, one: _Announced) -> None:
        one.end_ns = time.perf_counter_ns()
        before = set(map(id, one.breaks))
        one.breaks = [each for each in compiler_records.graph_breaks() if id(each) not in before]


class _Watched:
    """Wraps torch's context manager around a compilation, which it enters and leaves."""

    def __init__(self, watch: CompileWatch, inner: Any, given: tuple[Any, ...]) -> None:
        self._watch, self._inner, self._given = watch, inner, given
        self._one: _Announced | None = None

    def __enter__(self) -> Any:
        with suppress(Exception):  # the program compiles, whatever happens here
            self._one = self._watch.begun(*self._given)
        return self._inner.__enter__()

    def __exit__(self, *raised: object) -> Any:
        try:
            return self._inner.__exit__(*raised)
        finally:
            if self._one is not None:
                with suppress(Exception):
                    self._watch.ended(self._one)


def with_compilations(
    trace: Trace,
    watched: WatchedCompilations,
    event_times: EventTimes,
    ended_ns: int,
) -> Trace:
    """`trace` with compilations that ran until `ended_ns`, and without what the compiler ran."""
    owners = compiler_records.owners([*watched.earlier, *watched.records])
    timed = [_widened(trace, one) for one in _timed(watched, event_times, ended_ns)]
    made = added(trace, _described(timed, watched, owners))
    if watched.notes:
        made = replace(made, notes=(*made.notes, *watched.notes))
    files = {number: str(one.co_filename) for number, one in owners.items()}
    return with_compiled_steps(made, files)


def _timed(watched: WatchedCompilations, times: EventTimes, ended_ns: int) -> list[_Announced]:
    """Compilations by the clock of events; one that was not over ends with the window."""
    timed = []
    for one in watched.announced:
        start_ns, end_ns = times(np.array([one.start_ns, one.end_ns], np.int64)).tolist()
        end_ns = min(end_ns, ended_ns) if one.end_ns >= 0 else ended_ns
        if start_ns < end_ns:
            timed.append(replace(one, start_ns=start_ns, end_ns=end_ns))
    return timed


def _widened(trace: Trace, one: _Announced) -> _Announced:
    """A compilation for as long as the outermost scope that torch opens for it."""
    first = np.searchsorted(trace.start_ns, one.start_ns, side="right")
    tracks = [number for number, track in enumerate(trace.tracks) if track.native_id == one.thread]
    names = [number for number, name in enumerate(trace.names) if name in compiler_records.SCOPES]
    around = (trace.end_ns[:first] >= one.end_ns) & np.isin(trace.track[:first], tracks)
    rows = np.flatnonzero(around & np.isin(trace.name[:first], names))
    if not len(rows):
        return one
    return replace(one, start_ns=trace.start_ns.item(rows[0]), end_ns=trace.end_ns.item(rows[0]))


def _described(
    timed: list[_Announced],
    watched: WatchedCompilations,
    owners: dict[str, Any],
) -> list[TimedCompilation]:
    described, records = [], list(watched.records)
    for one in timed:
        given = one.trigger, one.compile_id
        matches = (each for each in records if compiler_records.is_record_of(each, *given))
        record = next(matches, None)
        if record is not None:
            records.remove(record)
        owner = record if getattr(record, "co_filename", None) else owners.get(one.compile_id)
        length_ns, frames = one.end_ns - one.start_ns, _users(frames_of(one.stack))
        facts = compiler_records.described(*given, length_ns, record, owner, one.breaks)
        described.append(TimedCompilation(one.start_ns, one.end_ns, one.thread, frames, facts))
    return described


def _users(frames: list[Frame]) -> list[Frame]:
    """Frames, outermost first, up to the innermost one of the user's."""
    while frames and not is_user_file(frames[-1].file):
        frames.pop()
    return frames
