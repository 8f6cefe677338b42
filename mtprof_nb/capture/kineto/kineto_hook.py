"""Hook `kineto`: PyTorch's own recorder, whose C++ callbacks its dispatcher calls around every op."""

from __future__ import annotations

import copy
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mtprof_nb.capture.activities import available
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.interrupts import interrupts_held_back
from mtprof_nb.capture.kineto.busy_threads import (
    LEFT_OPEN,
    ThreadsBefore,
    Unfinished,
    busy_threads,
    let_ops_end,
    positions,
)
from mtprof_nb.capture.kineto.event_cap import EventCap, Room, within_limits
from mtprof_nb.capture.kineto.fast_scopes import FastScopes
from mtprof_nb.capture.kineto.kineto_build import Noted, build_trace
from mtprof_nb.capture.kineto.kineto_scope import KinetoScope, keep_open
from mtprof_nb.capture.kineto.new_thread_stacks import ThreadStacks
from mtprof_nb.capture.kineto.profile_slot import ProfileSlot
from mtprof_nb.capture.kineto.tensor_operators import TensorOperators
from mtprof_nb.capture.shared.allocator_records import with_own_memory
from mtprof_nb.errors import HookError, SessionError, warn
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import SCOPE, Trace, empty_trace

#: The first whose Kineto can listen to all threads and filter activities.
_OLDEST = "2.12"
#: Our device names beside torch's activities.
_TORCH_ACTIVITY = {"NPU": "PrivateUse1"}
#: Recorders of torch.profiler's own beside Kineto, which `custom_profiler_config` asks for.
_OTHER_BACKENDS = ("cuspy", "cupti_monitor")


class KinetoHook:
    """One recording window of `torch.autograd.profiler`, read out as columns and then dropped."""

    def __init__(self, request: Request) -> None:
        import torch

        if not torch.profiler.kineto_available():
            msg = "this build of PyTorch has no Kineto: use hook='dispatch'"
            raise HookError(msg)
        if torch.__version__ < _OLDEST:
            here = torch.__version__
            msg = f"hook 'kineto' needs PyTorch {_OLDEST}, and this is {here}: upgrade, or use hook='dispatch'"
            raise HookError(msg)
        activities = available(request.activities)
        if not activities:
            msg = f"hook 'kineto' can record none of {', '.join(sorted(request.activities))} here: add CPU"
            raise HookError(msg)
        self._torch = torch
        self._request = replace(request, activities=activities)
        #: torch's low-level profiler of the present window.
        self.profiler: Any = None
        self._slot: ProfileSlot | None = None
        self._listens_to_all = False
        #: Why other threads are not recorded, if so.
        self._crowd = ""
        #: What of torch's was open as the recording ended.
        self._left_open: list[Unfinished] = []
        #: Scopes that are open.
        self._scopes: set[KinetoScope] = set()
        #: Where the other threads were as the recording ended.
        self._positions: dict[int, tuple[int, int]] = {}
        self._operators: TensorOperators | None = None
        self._new_threads: ThreadStacks | None = None
        self._fast_scopes: FastScopes | None = None
        self._threads_before = ThreadsBefore() if request.recorded.profile_memory else None
        self._thread_names: dict[int, str] = {}
        self._is_recording = False
        self._wall = WallClock(request.clock)
        self._wall_started_ns = 0
        #: Autograd's next number as the recording ended, of the thread that ended it.
        self._counters: dict[int, int] = {}
        #: What Kineto recorded, from its end until it is read out.
        self._results: Any = None
        #: Whether another torch profiler, started meanwhile, has taken Kineto away.
        self._is_emptied = False
        #: The traces read out so far. Several where the recording went on after memory had looked like a limit.
        self._parts: list[Trace] = []
        self._caps: list[EventCap] = []
        self._is_full = False
        #: Whether to listen to all threads, as far as there is a choice.
        self._listens_in_turn = True
        #: When recording of CPU ops was switched, and whether on.
        self._cpu_switched: list[tuple[int, bool]] = []

    def prepare(self) -> None:
        """Warm Kineto up. `SessionError` while another torch profiler is running."""
        if self._is_kineto_active():
            msg = "a torch profiler is already active in this process: stop it first, or profile outside of it"
            raise SessionError(msg)
        self._follow_python()
        self._mind_the_last_recording()
        profiler = self._make_profiler()
        with _silent_kineto():
            profiler._prepare_trace()
        self.profiler = profiler

    def _follow_python(self) -> None:
        """Make ready what stacks and modules need, unless somebody else profiles Python."""
        recorded, slot = self._request.recorded, ProfileSlot()
        if not (recorded.with_stack or recorded.with_modules) or not slot.is_free():
            return
        self._slot = slot
        if busy_threads():
            self._crowd = "Kineto cannot follow Python while they run; profile without stacks and modules to see them"
        if recorded.with_stack:
            self._operators = TensorOperators(self._torch)
            self._new_threads = ThreadStacks(self._request.clock) if self._can_listen_to_all else None

    def _mind_the_last_recording(self) -> None:
        """Other threads may still be in ops of the last recording, whose end must not find one that listens to all."""
        if self._can_listen_to_all and self._listens_in_turn and not LEFT_OPEN.has_ended():
            self._crowd = "another thread is still in an op, or in a scope of torch's, of the recording before"

    def start(self) -> None:
        """Record from here on; prepares first where nobody did."""
        if self.profiler is None:
            self.prepare()
        self._note_thread_names()
        if self._threads_before is not None:
            self._threads_before.note()
        takes_inputs = self._request.recorded.record_shapes and self.listens_to_all
        self._fast_scopes = FastScopes(self._torch) if takes_inputs else None
        for patch in self._patches():
            patch.install()
        self._start_kineto()
        self._is_recording = True
        if self._slot is not None:
            self._slot.started()
        remaining = self._request.max_events - sum(map(len, self._parts))
        folder = str(Path(self._torch.__file__).parent)
        self._caps.append(EventCap(remaining, self._finish, self._request.recorded, self._room(), folder))
        # Its thread neither begins nor runs while Kineto's Python tracer starts or stops, which would crash.
        self._caps[-1].start()

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
            # Its Python tracer has stumbled over a running thread, and stays behind.
            sys.setprofile(None)
            msg = "Kineto could not follow Python while other threads ran: try again, or leave with_stack off"
            raise HookError(msg) from error

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        with interrupts_held_back(), ExitStack() as each:
            each.callback(self._uninstall)
            for cap in self._caps:
                each.callback(cap.stop)
        self._read_out()
        parts, self._parts = self._parts, []
        trace = with_own_memory(merge(parts)) if parts else empty_trace(recorded=self._request.recorded)
        if self._is_emptied:
            trace = replace(trace, is_partial=True)
            warn(
                "a torch profiler was started during the recording and has emptied it, for Kineto serves only one: "
                "profile without it, or use hook='dispatch'"
            )
        self._warn_of_missing_threads(trace)
        trace = _without_switched_off(trace, self._cpu_switched)
        return within_limits(trace, self._request.max_events, self._caps, is_full=self._is_full)

    def _finish(self) -> None:
        """End the recording where it reached its limit, and go on where the memory was the program's own."""
        with interrupts_held_back():
            self._uninstall()
        self._read_out()
        # What is open now would be taken for open in a recording of the same threads.
        self._listens_in_turn = not self._listens_to_all
        is_stuck = bool(self._left_open) and self._listens_in_turn and not self._can_listen_to_all
        # Its Python tracer cannot be started while other threads run, and is not without need.
        is_over = self._slot is not None and not (self._caps[-1].was_mistaken(self._parts[-1:]) and not busy_threads())
        is_enough = sum(map(len, self._parts)) >= self._request.max_events
        if is_enough or is_stuck or is_over or not self._room().for_another_part():
            self._is_full = True
            return
        self.start()

    def _let_ops_end(self) -> None:
        """Give the ops that other threads are in a moment: Kineto would write their end into memory it has freed."""
        if not self._listens_to_all:
            return
        if busy_threads():
            # Where no device is recorded, naming them changes nothing but torch's mind to print a line about them.
            is_alone = self._request.activities == {"CPU"}
            names = ("CPU", "CUDA", "XPU") if is_alone else ("CPU",)
            self._torch.autograd._toggle_collection_dynamic(False, set(map(self._torch_activity, names)))
            let_ops_end()
        self._positions = positions()

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
            if not (was_recording or self._is_kineto_active()):
                # Prepared and never started: Kineto only lets go of its preparation at the end of a recording.
                profiler._start_trace()
            profiler.__exit__(None, None, None)
        finally:
            self._remove_patches()
            if self._slot is not None:
                self._slot.stopped()
        if was_recording:
            keep_open(self._scopes)
            self._results = profiler.kineto_results
            began_ns = self._results.trace_start_ns() if self._results is not None else 1
            # Somebody else's, who began after us, where it is not empty.
            self._is_emptied = not 0 < began_ns <= self._wall_started_ns
            if self._is_emptied:
                self._results = None

    def _read_out(self) -> None:
        """Keep what was recorded as a trace, and drop Kineto's own copy."""
        results, self._results = self._results, None
        if results is None:
            return
        self._note_thread_names()
        noted = Noted(self._thread_names, self._new_threads, self._wall, self._counters, self._fast_scopes)
        if self._wall.has_jumped:
            self._warn_of_jump()
        trace = build_trace(results, self._torch, self._request, noted)
        self._parts.append(trace if self._slot is None else self._slot.until_lost(trace))
        own = {(scope.native_id, scope.name) for scope in self._scopes}
        self._left_open = [one for one in noted.unfinished if (one.native_id, one.name) not in own]
        if self._listens_to_all:
            LEFT_OPEN.note(self._left_open, self._positions)
        self._scopes = set()

    def abandon(self) -> None:
        """In a forked child: record no more there, and keep nothing."""
        if self._is_recording:
            self.profiler, self._is_recording = None, False
            self._remove_patches()
            self._torch.autograd._disable_profiler()
            self._torch.autograd.profiler._run_on_profiler_stop()

    def _remove_patches(self) -> None:
        with ExitStack() as each:
            for patch in self._patches():
                each.callback(patch.remove)

    def _patches(self) -> list[TensorOperators | ThreadStacks | FastScopes]:
        return [one for one in (self._operators, self._new_threads, self._fast_scopes) if one is not None]

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A scope by torch's own `record_function`."""
        scopes, profiler = self._scopes, self.profiler
        return KinetoScope(
            self._torch.autograd.profiler.record_function(name, args),
            lambda: self._is_recording and self.profiler is profiler,
            scopes,
        )

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Devices as torch toggles them; CPU ops by the moment they start, for Kineto cannot resume all threads."""
        if not self._is_recording:
            return
        if "CPU" in activities:
            self._cpu_switched.append((self._request.clock.now_ns(), enable))
        others = {self._torch_activity(name) for name in (activities & self._request.activities) - {"CPU"}}
        if others:
            self._torch.autograd._toggle_collection_dynamic(enable, others)

    def _is_kineto_active(self) -> bool:
        """Whether somebody records with Kineto, on this thread or on all."""
        autograd = self._torch.autograd
        return bool(autograd._profiler_enabled() or autograd.profiler._is_profiler_enabled)

    def _torch_activity(self, name: str) -> Any:
        return getattr(self._torch.profiler.ProfilerActivity, _TORCH_ACTIVITY.get(name, name))

    def _make_profiler(self) -> Any:
        recorded, filters = self._request.recorded, self._request.activity_filters
        supported = self._torch.profiler.supported_activities()
        device = next((name for name in ("CUDA", "XPU", "NPU") if self._wants(name, supported)), None)
        device_module = {"NPU": self._torch._C._get_privateuse1_backend_name()}
        return self._torch.autograd.profiler.profile(
            use_kineto=True,
            use_cpu="CPU" in self._request.activities,
            use_device=device_module.get(device, device.lower()) if device else None,
            record_shapes=recorded.record_shapes,
            with_flops=recorded.with_flops,
            profile_memory=recorded.profile_memory,
            with_stack=self._slot is not None,
            experimental_config=self._experimental_config(),
            custom_trace_id_callback=lambda: self._request.trace_id,
            activity_filters={self._torch_activity(name): set(kinds) for name, kinds in filters.items()},
        )

    def _wants(self, name: str, supported: Any) -> bool:
        return name in self._request.activities and self._torch_activity(name) in supported

    @property
    def _can_listen_to_all(self) -> bool:
        """Listening to all threads Kineto loses the allocator's records, and stumbles over running ones' Python."""
        return not (self._crowd or self._request.recorded.profile_memory)

    @property
    def listens_to_all(self) -> bool:
        """Whether it records all threads, from its preparation on; otherwise the one that starts it."""
        config = self._request.experimental_config
        return self._listens_to_all if config is None else _asks_for_all_threads(config)

    def _experimental_config(self) -> Any:
        config = self._request.experimental_config
        if config is None:
            self._listens_to_all = self._can_listen_to_all and self._listens_in_turn
            return self._torch._C._profiler._ExperimentalConfig(profile_all_threads=self._listens_to_all)
        if any(backend in config.custom_profiler_config for backend in _OTHER_BACKENDS):
            asked = config.custom_profiler_config
            msg = f"custom_profiler_config={asked!r} asks for another recorder: leave it out, or use torch.profiler"
            raise HookError(msg)
        if config.trace_only:
            warn("trace_only=True has no effect: a trace is written from its events, so events() works; leave it out")
            config = copy.copy(config)
            config.trace_only = False
        return config

    def _note_thread_names(self) -> None:
        self._thread_names.update(
            (thread.native_id, thread.name) for thread in threading.enumerate() if thread.native_id is not None
        )

    def _warn_of_jump(self) -> None:
        outcome = "durations and stacks are lost, record again" if self._wall.has_turned else "times were put right"
        warn(f"{self._wall.jump}: {outcome}")

    def _warn_of_missing_threads(self, trace: Trace) -> None:
        if len(self._caps) > 1 and len(trace.tracks) > 1:
            remedy = "use a schedule" if any(cap.is_short for cap in self._caps) else "raise max_events"
            warn(f"other threads are missing in parts: memory grew as if by a limit of the recording; {remedy}")
        if self._crowd:
            warn(f"threads that began before the recording are missing: {self._crowd}")
        elif self._threads_before is not None and (ran := self._threads_before.that_ran()):
            warn(f"profile_memory: {ran}; start it inside, or profile without profile_memory")


def _without_switched_off(trace: Trace, switched: list[tuple[int, bool]]) -> Trace:
    """`trace` less the CPU ops that started while they were switched off."""
    if not switched:
        return trace
    state = np.array([True] + [enabled for _, enabled in switched])
    enabled = state[np.searchsorted([moment for moment, _ in switched], trace.start_ns, side="right")]
    return trace.take(np.flatnonzero(enabled | trace.on_device | (trace.kind == SCOPE)))


def _asks_for_all_threads(config: Any) -> bool:
    """Whether torch's config was made with `profile_all_threads`, which only its pickled state tells."""
    with_it, without_it = (type(config)(profile_all_threads=choice).__getstate__() for choice in (True, False))
    states = zip(config.__getstate__(), with_it, without_it, strict=True)
    return all(asked == chosen for asked, chosen, other in states if chosen != other)


@contextmanager
def _silent_kineto() -> Iterator[None]:
    """Kineto reads its log level once, when it is first prepared; at 6 it prints nothing."""
    key = "KINETO_LOG_LEVEL"
    if key in os.environ:
        yield
        return
    os.environ[key] = "6"
    try:
        yield
    finally:
        os.environ.pop(key, None)
