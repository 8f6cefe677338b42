"""Hook `kineto`: torch's own profiler, for where the native recorder is absent."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from mtprof_nb.capture.activities import available
from mtprof_nb.capture.hook import Hook, Request, without_switched_off
from mtprof_nb.capture.interrupts import interrupts_held_back
from mtprof_nb.capture.kineto import torch_profiler
from mtprof_nb.capture.kineto.exported_trace import Noted, exported_trace
from mtprof_nb.capture.samples.thread_names import frames_of_others
from mtprof_nb.errors import HookError, SessionError, warn
from mtprof_nb.model.trace import Trace, empty_trace

_EMPTIED = (
    "a torch profiler was started during the recording and has emptied it, because Kineto supports one profiler at a "
    "time: profile without it, or use hook='native'"
)
_STARTED_ELSEWHERE = (
    "what Kineto recorded is lost: the thread that started it has ended, and no other can stop it; call stop() before "
    "that thread ends, or use hook='native'"
)
_OTHER_PROFILER = (
    "stacks and modules are not recorded: another profiler of Python, such as cProfile, is active and would be ended "
    "by Kineto's; stop it first, or use hook='native'"
)


class KinetoHook(Hook):
    """One recording window of `torch.autograd.profiler`. It records the thread that starts it, and its backward."""

    def __init__(self, request: Request) -> None:
        import torch

        activities = available(request.activities)
        if not torch.profiler.kineto_available():
            msg = "this build of PyTorch has no Kineto: build the native recorder (python -m mtprof_nb build)"
            raise HookError(msg)
        if not activities:
            msg = f"hook 'kineto' can record none of {', '.join(sorted(request.activities))} here: add CPU"
            raise HookError(msg)
        torch_profiler.check_config(request.experimental_config)
        self._torch = torch
        self._request = replace(request, activities=activities)
        #: Torch's low-level profiler, from `prepare` to the end of the recording.
        self.profiler: Any = None
        self._is_recording = False
        #: The thread that started the recording.
        self._thread = 0
        #: The wall clock when Kineto had started.
        self._wall_started_ns = 0
        self._noted = Noted(request.clock)
        #: When recording of CPU ops was switched on or off, and which.
        self._cpu_switched: list[tuple[int, bool]] = []

    def prepare(self) -> None:
        """Warm Kineto up. `SessionError` while another torch profiler is running."""
        if torch_profiler.is_active(self._torch):
            msg = "a torch profiler is already active in this process: stop it first, or profile outside of it"
            raise SessionError(msg)
        recorded = self._request.recorded
        needs_python = recorded.with_stack or recorded.with_modules
        is_free = sys.getprofile() is None and threading.getprofile() is None
        if needs_python and not is_free:
            warn(_OTHER_PROFILER)
        profiler = torch_profiler.make_profiler(self._torch, self._request, with_python=needs_python and is_free)
        with torch_profiler.silent_kineto():
            profiler._prepare_trace()
        self.profiler = profiler

    def start(self) -> None:
        """Record from here on; prepares first if needed."""
        if self.profiler is None:
            self.prepare()
        self._noted.note()
        try:
            self.profiler._start_trace()
        except RuntimeError as error:
            if not self.profiler.with_stack or "INTERNAL ASSERT" not in str(error):
                raise
            # Kineto's Python tracer has failed at a running thread, and has left its profile function installed.
            sys.setprofile(None)
            msg = "Kineto could not follow Python while other threads ran: try again, or leave with_stack off"
            raise HookError(msg) from error
        self._wall_started_ns = time.time_ns()
        self._is_recording, self._thread = True, threading.get_ident()

    @property
    def _is_elsewhere(self) -> bool:
        return self._thread != threading.get_ident()

    def check_thread(self) -> None:
        """`SessionError` in another thread than the one that started the recording, if that still runs."""
        if self._is_recording and self._is_elsewhere and self._thread in frames_of_others():
            msg = (
                "this recording can only be stopped in the thread that started it, for Kineto keeps its state there: "
                "call stop() in that thread, or use hook='native'"
            )
            raise SessionError(msg)

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        with interrupts_held_back():
            results = self._uninstall()
        if results is None:
            return empty_trace(recorded=self._request.recorded)
        began_ns = results.trace_start_ns()
        # A recording that began after this one is another profiler's.
        if not 0 < began_ns <= self._wall_started_ns:
            warn(_STARTED_ELSEWHERE if self._is_elsewhere else _EMPTIED)
            return replace(empty_trace(recorded=self._request.recorded), is_partial=True)
        trace = exported_trace(results, self._torch, self._request, self._noted)
        return without_switched_off(trace, self._cpu_switched)

    def _uninstall(self) -> Any:
        """End the recording, and return Kineto's results; None if there are none."""
        profiler, self.profiler = self.profiler, None
        was_recording, self._is_recording = self._is_recording, False
        if profiler is None:
            return None
        self._noted.note()
        if not (was_recording or torch_profiler.is_active(self._torch)):
            # Kineto releases what it prepared only at the end of a recording.
            profiler._start_trace()
        profiler.__exit__(None, None, None)
        return profiler.kineto_results if was_recording else None

    def abandon(self) -> None:
        if self._is_recording:
            self.profiler, self._is_recording = None, False
            self._torch.autograd._disable_profiler()
            self._torch.autograd.profiler._run_on_profiler_stop()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A scope by torch's own `record_function`."""
        profiler = self.profiler
        scope = self._torch.autograd.profiler.record_function(name, args)
        return torch_profiler.KinetoScope(scope, lambda: self._is_recording and self.profiler is profiler)

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Devices as torch toggles them; CPU ops by when they start."""
        if not self._is_recording:
            return
        if "CPU" in activities:
            self._cpu_switched.append((self._request.clock.now_ns(), enable))
        if others := (activities & self._request.activities) - {"CPU"}:
            members = torch_profiler.activities_of(self._torch, others)
            self._torch.autograd._toggle_collection_dynamic(enable, members)
