"""Hook `kineto`: PyTorch's own recorder, whose C++ callbacks its dispatcher calls around every op."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mtprof_nb.building.allocator_records import with_own_memory
from mtprof_nb.capture.activities import available
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.hook import Hook, Request, SoFar, without_switched_off
from mtprof_nb.capture.interrupts import interrupts_held_back, run_all
from mtprof_nb.capture.kineto import torch_profiler
from mtprof_nb.capture.kineto.busy_threads import RecordedThreads, let_ops_end, others_are_busy
from mtprof_nb.capture.kineto.event_cap import EventCap, Room, warn_of_parts, why_ended
from mtprof_nb.capture.kineto.kineto_build import Noted, build_trace
from mtprof_nb.capture.kineto.new_thread_stacks import ThreadStacks
from mtprof_nb.capture.kineto.profile_slot import ProfileSlot
from mtprof_nb.capture.kineto.tensor_operators import TensorOperators
from mtprof_nb.capture.samples.thread_names import frames_of_others, running_threads
from mtprof_nb.capture.torch_private.fast_scopes import FastScopes
from mtprof_nb.capture.torch_private.silent_kineto import silent_kineto
from mtprof_nb.errors import HookError, SessionError, warn
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Trace, Unrecorded, empty_trace

_EMPTIED = (
    "a torch profiler was started during the recording and has emptied it, because Kineto supports one profiler at a "
    "time: profile without it, or use hook='dispatch'"
)
_STARTED_ELSEWHERE = (
    "what Kineto recorded is lost: the thread that started it has ended, and no other can stop it; call stop() before "
    "that thread ends, or use hook='native'"
)


class KinetoHook(Hook):
    """One recording window of `torch.autograd.profiler`, read out as columns and then dropped.

    A window is one part, or several. `prepare` makes `profiler`, `start` records, `_uninstall` ends the part and keeps
    Kineto's results, `_read_out` makes a trace of them. An `EventCap` calls `_finish` where the memory looks as if a
    limit were reached: it ends the part, and starts another if the memory was the program's own.
    """

    def __init__(self, request: Request) -> None:
        import torch

        torch_profiler.check_torch(torch)
        activities = available(request.activities)
        if not activities:
            msg = f"hook 'kineto' can record none of {', '.join(sorted(request.activities))} here: add CPU"
            raise HookError(msg)
        self._torch = torch
        self._request = replace(request, activities=activities)
        #: Torch's low-level profiler of the present part, from `prepare` to `_uninstall`.
        self.profiler: Any = None
        self._is_recording = False
        #: The thread that started the recording.
        self._thread = 0
        #: Kineto's results, from the end of a part until it is read out.
        self._results: Any = None
        #: The traces of the parts so far, and the cap of each part.
        self._parts: list[Trace] = []
        self._caps: list[EventCap] = []
        #: When a limit ended the recording before `stop`, by the clock of the session; 0 if none did.
        self._full_ns = 0
        #: Whether another torch profiler was started meanwhile, which empties Kineto.
        self._is_emptied = False
        #: Which threads are recorded.
        self.threads = RecordedThreads(request)
        #: Python's profile function, where Kineto's Python tracer is used.
        self._slot: ProfileSlot | None = None
        self._patches: list[TensorOperators | ThreadStacks | FastScopes] = []
        self._new_threads: ThreadStacks | None = None
        self._fast_scopes: FastScopes | None = None
        self._open_scopes: set[torch_profiler.KinetoScope] = set()
        self._thread_names: dict[int, str] = {}
        self._wall = WallClock(request.clock)
        #: The wall clock when Kineto had started.
        self._wall_started_ns = 0
        #: Autograd's next sequence number as the recording ended, of the thread that ended it.
        self._counters: dict[int, int] = {}
        #: When recording of CPU ops was switched on or off, and which.
        self._cpu_switched: list[tuple[int, bool]] = []

    def prepare(self) -> None:
        """Warm Kineto up. `SessionError` while another torch profiler is running."""
        if torch_profiler.is_active(self._torch):
            msg = "a torch profiler is already active in this process: stop it first, or profile outside of it"
            raise SessionError(msg)
        recorded, slot = self._request.recorded, ProfileSlot()
        needs_python = recorded.with_stack or recorded.with_modules
        self._slot = slot if needs_python and slot.is_free() else None
        with_python = self._slot is not None
        self.threads.choose(with_python=with_python)
        profiler = torch_profiler.make_profiler(
            self._torch, self._request, all_threads=self.threads.are_all, with_python=with_python
        )
        with silent_kineto():
            profiler._prepare_trace()
        self.profiler = profiler

    def start(self) -> None:
        """Record from here on; prepares first if needed."""
        if self.profiler is None:
            self.prepare()
        self._note_thread_names()
        self.threads.note_start()
        self._install_patches()
        self._start_kineto()
        self._is_recording, self._thread = True, threading.get_ident()
        if self._slot is not None:
            self._slot.started()
        remaining = self._request.max_events - sum(map(len, self._parts))
        folder = str(Path(self._torch.__file__).parent)
        self._caps.append(EventCap(remaining, self._finish, self._request.recorded, self._room(), folder))
        # The cap's thread must not run while Kineto's Python tracer starts or stops: that would crash.
        self._caps[-1].start()

    def _install_patches(self) -> None:
        with_stack = self._slot is not None and self._request.recorded.with_stack
        with_inputs = self._request.recorded.record_shapes
        operators = TensorOperators(self._torch) if with_stack else None
        self._new_threads = ThreadStacks(self._request.clock) if with_stack and self.threads.are_all else None
        self._fast_scopes = FastScopes(self._torch) if with_inputs and self.threads.are_all else None
        self._patches = [one for one in (operators, self._new_threads, self._fast_scopes) if one is not None]
        for patch in self._patches:
            patch.install()

    def _remove_patches(self) -> None:
        run_all(*(patch.remove for patch in self._patches))

    def _room(self) -> Room:
        return Room(self._request.recorded, follows_python=self._slot is not None)

    def _start_kineto(self) -> None:
        self._wall = WallClock(self._request.clock)
        self._wall.note()
        try:
            self.profiler._start_trace()
            self._wall_started_ns = time.time_ns()
        except RuntimeError as error:
            if self._slot is None or "INTERNAL ASSERT" not in str(error):
                raise
            # Kineto's Python tracer has failed at a running thread, and has left its profile function installed.
            sys.setprofile(None)
            msg = "Kineto could not follow Python while other threads ran: try again, or leave with_stack off"
            raise HookError(msg) from error

    def check_thread(self) -> None:
        """`SessionError` where Kineto records one thread, and this is another one."""
        if self._is_recording and self._is_elsewhere and self._thread in frames_of_others():
            msg = (
                "this recording can only be stopped in the thread that started it, for Kineto keeps its state there: "
                "call stop() in that thread, or use hook='native'"
            )
            raise SessionError(msg)

    @property
    def _is_elsewhere(self) -> bool:
        """Whether Kineto records one thread, and this is another one."""
        return not self.threads.are_all and self._thread != threading.get_ident()

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        with interrupts_held_back():
            run_all(*(cap.stop for cap in reversed(self._caps)), self._uninstall)
        self._read_out()
        parts, self._parts = self._parts, []
        trace = with_own_memory(merge(parts)) if parts else empty_trace(recorded=self._request.recorded)
        if self._is_emptied:
            trace = replace(trace, is_partial=True)
            warn(_STARTED_ELSEWHERE if self._is_elsewhere else _EMPTIED)
        self._warn_of_missing_threads(trace)
        trace = without_switched_off(trace, self._cpu_switched)
        if not self._full_ns:
            warn_of_parts(trace, self._caps)
            return trace
        full_ns = int(self._wall.among_kineto([self._full_ns])[0])
        reason = why_ended(self._request.max_events, len(trace), self._caps[-1])
        return replace(trace, unrecorded=(Unrecorded(full_ns, full_ns, reason),), dropped_exactly=False)

    def _finish(self) -> None:
        """End the part that reached a limit. Start another one where the memory was the program's own."""
        if not self._is_recording:  # abandoned, in a child that was forked meanwhile
            return
        moment_ns = self._request.clock.now_ns()
        with interrupts_held_back():
            self._uninstall()
        self._read_out()
        # Kineto's Python tracer cannot be started while other threads run.
        can_restart = self._slot is None or (self._caps[-1].was_mistaken(self._parts[-1:]) and not others_are_busy())
        has_events_left = sum(map(len, self._parts)) < self._request.max_events
        if can_restart and has_events_left and self.threads.can_go_on() and self._room().for_another_part():
            self.start()
        else:
            self._full_ns = moment_ns

    def _let_ops_end(self) -> None:
        """Wait for ops that other threads are in: Kineto would write their end into memory that it has freed."""
        if not self.threads.are_all:
            return
        if others_are_busy():
            # With devices that are not recorded, torch prints no line about the change, and does nothing else either.
            is_alone = self._request.activities == {"CPU"}
            names = ("CPU", "CUDA", "XPU") if is_alone else ("CPU",)
            self._torch.autograd._toggle_collection_dynamic(False, torch_profiler.activities_of(self._torch, names))
            let_ops_end()
        self.threads.note_positions()

    def _uninstall(self) -> None:
        profiler, self.profiler = self.profiler, None
        if profiler is None:
            return
        was_recording, self._is_recording = self._is_recording, False
        if self._slot is not None:
            self._slot.stopping()
        if was_recording:
            self._let_ops_end()
        self._wall.note()
        self._counters = {threading.get_native_id(): self._torch.autograd._get_sequence_nr()}
        try:
            if not (was_recording or torch_profiler.is_active(self._torch)):
                # Kineto releases what it prepared only at the end of a recording.
                profiler._start_trace()
            profiler.__exit__(None, None, None)
        finally:
            self._remove_patches()
            if self._slot is not None:
                self._slot.stopped()
        if was_recording:
            self._keep_results(profiler)

    def _keep_results(self, profiler: Any) -> None:
        for scope in self._open_scopes:
            scope.outlive()
        results = profiler.kineto_results
        began_ns = results.trace_start_ns() if results is not None else 1
        # A recording that began after this one is another profiler's.
        self._is_emptied = not 0 < began_ns <= self._wall_started_ns
        self._results = None if self._is_emptied else results

    def _read_out(self) -> None:
        """Make a trace of Kineto's results, and drop them."""
        results, self._results = self._results, None
        if results is None:
            return
        self._note_thread_names()
        noted = Noted(self._thread_names, self._new_threads, self._wall, self._counters, self._fast_scopes)
        if self._wall.has_jumped:
            self._warn_of_jump()
        trace = build_trace(results, self._torch, self._request, noted)
        self._parts.append(trace if self._slot is None else self._slot.until_lost(trace))
        own = {(scope.native_id, scope.name) for scope in self._open_scopes}
        self.threads.note_unfinished([one for one in noted.unfinished if (one.native_id, one.name) not in own])
        self._open_scopes = set()

    def so_far(self) -> SoFar | None:
        """When a limit ended the recording; None before."""
        return SoFar((), (), full_ns=self._full_ns - self._request.clock.offset_ns) if self._full_ns else None

    def abandon(self) -> None:
        if self._is_recording:
            self.profiler, self._is_recording = None, False
            self._remove_patches()
            self._torch.autograd._disable_profiler()
            self._torch.autograd.profiler._run_on_profiler_stop()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A scope by torch's own `record_function`."""
        profiler = self.profiler
        return torch_profiler.KinetoScope(
            self._torch.autograd.profiler.record_function(name, args),
            lambda: self._is_recording and self.profiler is profiler,
            self._open_scopes,
        )

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Devices as torch toggles them; CPU ops by when they start: Kineto cannot resume all threads."""
        if not self._is_recording:
            return
        if "CPU" in activities:
            self._cpu_switched.append((self._request.clock.now_ns(), enable))
        if others := (activities & self._request.activities) - {"CPU"}:
            self._torch.autograd._toggle_collection_dynamic(enable, torch_profiler.activities_of(self._torch, others))

    def _note_thread_names(self) -> None:
        self._thread_names |= running_threads()

    def _warn_of_jump(self) -> None:
        outcome = "durations and stacks are lost, record again" if self._wall.has_turned else "times were put right"
        warn(f"{self._wall.jump}: {outcome}")

    def _warn_of_missing_threads(self, trace: Trace) -> None:
        if len(self._caps) > 1 and len(trace.tracks) > 1:
            remedy = "use a schedule" if any(cap.is_short for cap in self._caps) else "raise max_events"
            warn(f"other threads are missing in parts: memory use suggests that a limit was reached; {remedy}")
        self.threads.warn_of_missing()
