"""Records devices through Kineto alone, left to torch's own profiler when that needs it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mtprof_nb.capture.machine.available_memory import bytes_before_a_kill
from mtprof_nb.capture.native.kineto_rows import DeviceRows, joined, missing_kernels, read_rows
from mtprof_nb.capture.patches import Patches
from mtprof_nb.capture.torch_private.process_state import private_backend_name
from mtprof_nb.capture.torch_private.silent_kineto import silent_kineto
from mtprof_nb.model.schema import TIMES
from mtprof_nb.model.trace import RUNTIME

_WORK = ("gpu_memcpy", "gpu_memset", "kernel")
#: The activities that torch asks Kineto for, by our name of the device, and waiting.
ACTIVITIES = {
    "CUDA": (*_WORK, "cuda_runtime", "cuda_driver", "overhead", "cuda_sync"),
    "XPU": (*_WORK, "xpu_runtime", "xpu_driver", "xpu_sync"),
    "MTIA": ("mtia_ccp_events", "mtia_runtime", "mtia_insight"),
    "HPU": ("hpu_op",),
    "NPU": (*_WORK, "privateuse1_runtime", "privateuse1_driver"),
}
#: Bytes of CUPTI's records of a call, and of an event on a device.
_CALL_BYTES, _EVENT_BYTES = 40, 192
#: Kineto stops at the limit of its buffers: they count as full from so much of it on.
_NEARLY_FULL = 0.9
_SMALLEST_BUFFER, _LARGEST_BUFFER = 128 << 20, 4 << 30
#: Bytes that columns and a trace of one call or event take at the end, beyond Kineto's own.
_BYTES_TO_READ = 512
#: Files that the system keeps in memory may seem to leave none: so many bytes are taken in any case.
TAKEN_ANYWAY = 64 << 20
_CLOCK_MOVED_NS = 1_000_000
_ANOTHER = (
    "another profiler of PyTorch was recording, and there is one Kineto in a process; end that one "
    "first, or profile outside of it"
)
_LOST = "what devices did is missing in part: somebody else has ended Kineto's recording meanwhile"


def buffer_bytes(available: int) -> int:
    """The bytes that Kineto may use for records: an eighth of what is left, for they are copied."""
    return max(_SMALLEST_BUFFER, min(available // 8, _LARGEST_BUFFER))


class DeviceRecording:
    """One recording of devices of one type, in several parts around those of torch's profiler."""

    #: A recording that has ended, and was started on another thread: that one may report memory yet.
    _lingering: ClassVar[DeviceRecording | None] = None

    def __init__(self, torch: Any, recorder: Any, device: str, available: int) -> None:
        self.device = device
        self._recorder = recorder
        self._buffer_bytes = buffer_bytes(available)
        self._most_rows = 0
        self._patches = Patches()
        self._is_watching = False
        self._torch = torch
        self._module = private_backend_name(torch) if device == "NPU" else device.lower()
        self._owners = (torch.autograd, torch.autograd.profiler)
        self._lock = threading.RLock()
        self._is_wanted = self._is_prepared = self._is_recording = False
        self._parts: list[DeviceRows] = []
        self._notes: dict[str, None] = {}
        self._away_ns = 0
        self._left_ns = 0
        #: When the first event begins that is not kept, by `time.perf_counter_ns`; how many are not.
        self.unrecorded_from = TIMES.limit
        self.dropped = 0
        self.is_out_of_memory = False

    def prepare(self) -> None:
        """Do what takes Kineto long. In use by somebody else, it is not prepared."""
        with self._lock:
            self._watch_torch()
            if self._is_prepared or self._is_recording:
                return
            config = f"ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB={self._buffer_bytes >> 20}"
            activities = list(ACTIVITIES[self.device])
            try:
                with silent_kineto():
                    self._is_prepared = self._recorder.prepare_devices(activities, config)
            except RuntimeError as error:
                self._note(f"devices are not recorded: {error}")

    def start(self, most_rows: int) -> None:
        """Record from here on, at most so many calls and events."""
        with self._lock:
            self._most_rows = most_rows
            self._is_wanted = True
            self._begin()

    def _begin(self) -> None:
        self.prepare()
        if not self._is_prepared:
            self._left_ns = self._left_ns or time.perf_counter_ns()
            return
        self._is_prepared = False
        try:
            self._recorder.start_devices()
            self._is_recording = True
        except RuntimeError as error:
            self._note(f"devices are not recorded: {error}")
        if self._left_ns:
            self._away_ns, self._left_ns = self._away_ns + time.perf_counter_ns() - self._left_ns, 0

    def stop(self) -> DeviceRows | None:
        """End the recording, and return all of it; None where nothing was recorded."""
        with self._lock:
            self._is_wanted = False
            try:
                self._end()
            finally:
                self._stop_watching()
            if self._left_ns:
                self._away_ns += time.perf_counter_ns() - self._left_ns
            if self._away_ns and not self._parts:
                self._note(f"devices are not recorded: {_ANOTHER}")
            elif self._away_ns:
                self._note(f"devices are missing for {self._away_ns / 1e9:.3g} s: {_ANOTHER}")
            parts, self._parts = self._parts, []
            return joined(parts) if parts else None

    def _end(self) -> None:
        """End the present part. What was only prepared is released."""
        was_recording, self._is_recording = self._is_recording, False
        was_prepared, self._is_prepared = self._is_prepared, False
        if not (was_recording or was_prepared):
            return
        try:
            self._wait_for_device()
            count = self._recorder.stop_devices()
            if count is not None:
                self._read(self._recorder.read_devices(self._room(count)))
            elif was_recording:
                self._note(_LOST)
        except (RuntimeError, MemoryError) as error:
            self._note(f"what devices did is lost: {error}")

    def _room(self, count: int) -> int:
        """How many of `count` events may be kept: as asked for, and as the memory left allows."""
        wanted = min(count, max(self._most_rows - sum(map(len, self._parts)), 0))
        left = max(min(bytes_before_a_kill(), default=sys.maxsize), TAKEN_ANYWAY)
        fits = left // _BYTES_TO_READ
        self.is_out_of_memory |= fits < wanted
        return min(wanted, fits)

    def _wait_for_device(self) -> None:
        """Let all that was launched end: Kineto hands out no record of it before.

        A device that was never used is left so.
        """
        module: Any = getattr(self._torch, self._module, None)
        try:
            if hasattr(module, "is_initialized") and module.is_initialized():
                module.synchronize()
        except Exception as error:
            self._note(f"the last kernels may be missing: the device did not end them ({error})")

    def _read(self, columns: Mapping[str, Any]) -> None:
        rows = read_rows(columns)
        self.unrecorded_from = min(self.unrecorded_from, columns["until"])
        self.dropped += columns["count"] - len(rows)
        if abs(columns["clock_moved_ns"]) > _CLOCK_MOVED_NS:
            moved = f"{columns['clock_moved_ns'] / 1e9:.3g} s"
            self._note(f"times of devices may be wrong by {moved}: the clock was changed by that")
        calls = int((rows.kind == RUNTIME).sum())
        taken = calls * _CALL_BYTES + (len(rows) - calls) * _EVENT_BYTES
        if taken >= _NEARLY_FULL * self._buffer_bytes:
            full = f"Kineto's {self._buffer_bytes >> 20:,} MB were full"
            self._note(f"the end of what devices did is missing: {full}; use a schedule")
        if missing := missing_kernels(rows):
            remedy = "record less at a time"
            self._note(f"{missing:,} kernels are missing: Kineto dropped their records; {remedy}")
        self._parts.append(rows)

    def abandon(self) -> None:
        """In a forked child: Kineto is its parent's there, and its own next recording ends it."""
        self._is_wanted = self._is_prepared = self._is_recording = False
        self._lock = threading.RLock()
        self._patches.undo()

    def toggle(self, enable: bool) -> None:
        """Record devices from now on, or do not."""
        with self._lock:
            if self._is_recording:
                self._recorder.toggle_devices(enable)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what is missing."""
        return tuple(self._notes)

    def _note(self, sentence: str) -> None:
        self._notes.setdefault(sentence)

    def _watch_torch(self) -> None:
        """Step aside before torch's profiler prepares Kineto, and come back after it has ended."""
        if self._is_watching:
            return
        self._is_watching = True
        if (before := DeviceRecording._lingering) is not None:
            before._patches.undo()
            DeviceRecording._lingering = None
        for owner in self._owners:
            for name, maker in (
                ("_prepare_profiler", self._before),
                ("_enable_profiler", self._before),
                ("_disable_profiler", self._after),
            ):
                if hasattr(owner, name):
                    self._patches.replace(owner, name, maker)

    def _stop_watching(self) -> None:
        """Let torch alone, unless another thread has to make room for torch's profiler yet."""
        if self._recorder.lend_memory(True):
            DeviceRecording._lingering = self
            return
        DeviceRecording._lingering = None
        self._patches.undo()

    def _before(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step_aside(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                if self._is_recording or self._is_prepared:
                    self._left_ns = time.perf_counter_ns()
                    self._end()
            self._recorder.lend_memory(True)
            if self is DeviceRecording._lingering:
                self._stop_watching()
            return original(*args, **kwargs)

        return step_aside

    def _after(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def come_back(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            finally:
                self._recorder.lend_memory(False)
                with self._lock:
                    if self._is_wanted and not self._is_recording:
                        self._begin()

        return come_back
