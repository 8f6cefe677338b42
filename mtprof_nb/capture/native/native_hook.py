"""Hook `native`: our own recorder in C++, which PyTorch's dispatcher calls around every op."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any, ClassVar

from mtprof_nb.capture.activities import DEVICES, available
from mtprof_nb.capture.compiled.timed_kernels import TimedKernels
from mtprof_nb.capture.hook import Hook, Request, SoFar, without_switched_off
from mtprof_nb.capture.interrupts import interrupts_held_back
from mtprof_nb.capture.living_objects import LivingObjects
from mtprof_nb.capture.machine.available_memory import available_bytes, bytes_before_a_kill, resident_bytes
from mtprof_nb.capture.native.device_join import RecordedDevices
from mtprof_nb.capture.native.device_recording import TAKEN_ANYWAY, DeviceRecording
from mtprof_nb.capture.native.native_trace import build_native_trace
from mtprof_nb.capture.native.recorder_loading import recorder, why_not
from mtprof_nb.capture.samples.python_stacks import running_cell
from mtprof_nb.capture.samples.thread_names import native_ids_by_low_half, running_threads
from mtprof_nb.capture.torch_private.fast_scopes import FastScopes
from mtprof_nb.capture.torch_private.mapped_storages import MappedStorages
from mtprof_nb.capture.torch_private.process_state import next_sequence_number
from mtprof_nb.capture.torch_private.profiler_flag import ProfilerFlag
from mtprof_nb.errors import HookError, warn
from mtprof_nb.model.schema import TIMES
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import RUNTIME, SourceLine, Trace, empty_trace

#: Bytes that the recorder keeps for an event; for its values, where each has its own; and for a block and its release.
_BYTES_AN_EVENT, _BYTES_OF_VALUES, _BYTES_OF_MEMORY = 64, 16, 80


def serves(request: Request) -> bool:
    """Whether hook `auto` records PyTorch by this hook: it is built, and can record the devices."""
    found = recorder()
    has_torch_options = request.experimental_config is not None or bool(request.activity_filters)
    if found is None or has_torch_options:
        return False
    return bool(found.records_devices) or available(request.activities) == {"CPU"}


def _device(request: Request, found: Any) -> str | None:
    """The type of device to record beside the CPU, as torch chooses one of several; or None."""
    chosen = available(request.activities)
    name = next((name for name in DEVICES if name in chosen), None)
    if name is not None and not found.records_devices:
        reason = "this build of PyTorch has no Kineto for C++"
        msg = f"hook 'native' cannot record {name}: {reason}; use hook='kineto', or activities=['cpu']"
        raise HookError(msg)
    return name


def _most_events(request: Request) -> int:
    """The number of events that is asked for, or that fits into half of the available memory."""
    nbytes_left, recorded = available_bytes(), request.recorded
    left = sys.maxsize if nbytes_left is None else max(nbytes_left, TAKEN_ANYWAY)
    nbytes = _BYTES_AN_EVENT + _BYTES_OF_VALUES * recorded.record_shapes + _BYTES_OF_MEMORY * recorded.profile_memory
    return min(request.max_events, left // 2 // nbytes)


class NativeHook(Hook):
    """One recording window of the native recorder. It sees the ops of all threads, with memory, shapes and stacks."""

    #: The hook that was started last. Its end may have failed, as in a thread at the limit of recursion: the next
    #: start ends it.
    _started: ClassVar[NativeHook | None] = None

    def __init__(self, request: Request) -> None:
        import torch

        module = recorder()
        if module is None:
            msg = f"hook 'native' cannot record here: {why_not()}; or use hook='kineto'"
            raise HookError(msg)
        if request.activity_filters:
            msg = "hook 'native' records every CPU op and cannot filter activities: use hook='kineto'"
            raise HookError(msg)
        if request.experimental_config is not None:
            warn("experimental_config has no effect with hook 'native': use hook='kineto'")
        self._torch = torch
        self._recorder = module
        self._request = request
        self._is_recording = False
        self._most_events = request.max_events
        self._fast_scopes = FastScopes(torch, module, with_inputs=request.recorded.record_shapes)
        self._mapped = MappedStorages(torch, module)
        self._flag = ProfilerFlag(torch)
        self._kernels = TimedKernels(module.timed)
        device = _device(request, module)
        self._devices: DeviceRecording | None = None
        if device is not None:
            self._devices = DeviceRecording(torch, module, device, available_bytes() or 0)
        self._thread_names: dict[int, str] = {}
        #: When recording of CPU ops was switched on or off, and which; and that of devices.
        self._switched: list[tuple[int, bool]] = []
        self._devices_switched: list[tuple[int, bool]] = []

    def prepare(self) -> None:
        """Warm Kineto up, where devices are recorded."""
        if self._devices is not None:
            with interrupts_held_back():
                self._devices.prepare()

    def start(self) -> None:
        """Record from here on."""
        recorded = self._request.recorded
        needs_stacks = recorded.with_stack or recorded.with_modules
        if needs_stacks and not self._recorder.reads_frames:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            warn(f"hook 'native' cannot read the stacks of Python {version}: lines and modules are missing")
        self._thread_names = running_threads()
        self._most_events = _most_events(self._request)
        with interrupts_held_back():
            if NativeHook._started is not None and self._recorder.is_recording():
                NativeHook._started._end()
                NativeHook._started._end_devices()
            NativeHook._started = self
            notes_memory = self._recorder.start(
                with_inputs=recorded.record_shapes or recorded.with_flops,
                with_stacks=needs_stacks,
                with_memory=recorded.profile_memory,
                with_ids=self._request.has_execution_trace,
                max_events=self._most_events,
                module_call=getattr(self._torch.nn.Module.__call__, "__code__", None),
                outermost=running_cell(),
                with_device_memory=recorded.profile_memory and self._devices is not None,
            )
            self._is_recording = True
            # After the scopes, for which torch looks at the flag.
            self._fast_scopes.install()
            self._kernels.install()
            if notes_memory:
                self._mapped.install()
            self._flag.set()
            if self._devices is not None:
                self._devices.start(self._most_events)
        if recorded.profile_memory and not notes_memory:
            warn("another CPU allocator is in use than in an earlier recording: hook 'native' records no memory")

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        with interrupts_held_back():
            if not self._is_recording:
                self._end_devices()
                return empty_trace(recorded=self._request.recorded)
            counter = next_sequence_number(self._torch)
            columns = self._end()
            devices = self._end_devices()
            self._add_missing(columns)
        names = self._thread_names | running_threads()
        counters = {threading.get_native_id(): counter}
        objects = LivingObjects(self._torch, self._recorder.living)
        scopes = self._fast_scopes.left
        trace = build_native_trace(
            columns,
            objects,
            self._request,
            names,
            counters,
            scopes,
            devices,
        )
        if self._devices is not None:
            trace = replace(trace, notes=(*trace.notes, *self._devices.notes))
        if "CPU" not in self._request.activities:
            trace = trace.take(trace.on_device | (trace.kind == RUNTIME))
        return without_switched_off(trace, self._switched, self._devices_switched)

    def _end_devices(self) -> RecordedDevices | None:
        rows = self._devices.stop() if self._devices is not None else None
        if self._devices is None or rows is None:
            return None
        return RecordedDevices(self._devices.device, rows, native_ids_by_low_half())

    def _add_missing(self, columns: dict[str, Any]) -> None:
        """Count events of devices that are not kept like ops: the trace ends before the first."""
        if (devices := self._devices) is not None:
            columns["until"] = min(columns["until"], devices.unrecorded_from)
            columns["dropped"] += devices.dropped
            columns["is_out_of_memory"] |= devices.is_out_of_memory

    def _end(self) -> Any:
        self._restore_torch()
        self._is_recording = False  # also where memory does not suffice to read it: then it is lost
        left = sys.maxsize
        with suppress(MemoryError, RecursionError):  # then it is read as far as memory suffices
            left = min(bytes_before_a_kill(), default=left)
        columns = self._recorder.stop(max(left, TAKEN_ANYWAY))
        columns["is_out_of_memory"] |= self._most_events < self._request.max_events
        return columns

    def _restore_torch(self) -> None:
        self._flag.restore()
        self._mapped.remove()
        self._fast_scopes.remove()
        self._kernels.remove()

    def so_far(self) -> SoFar | None:
        """The slowest ops, and the slowest lines of the user's where stacks are recorded."""
        state = self._recorder.so_far() if self._is_recording else None
        if state is None:
            return None
        ops, stacks, until = state
        lines: Counter[SourceLine] = Counter()
        for frames, ns in stacks:
            users = (SourceLine(file, line) for file, line in frames if is_user_file(file))
            if (line := next(users, None)) is not None:
                lines[line] += ns
        slowest = tuple((name, ns) for name, _, ns in ops)
        return SoFar(slowest, tuple(lines.most_common()), resident_bytes(), until if until < TIMES.limit else 0)

    def abandon(self) -> None:
        if self._is_recording:
            self._is_recording = False
            self._restore_torch()
            self._recorder.abandon()
        if self._devices is not None:
            self._devices.abandon()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A scope by torch's own `record_function`, which other listeners of torch see too."""
        scope: AbstractContextManager[Any] = self._torch.autograd.profiler.record_function(name, args)
        return scope

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Leave out, or keep, the ops that start from now on, and what is launched from now on."""
        if not self._is_recording:
            return
        now_ns = self._request.clock.now_ns()
        if "CPU" in activities:
            self._switched.append((now_ns, enable))
        if self._devices is not None and self._devices.device in activities:
            self._devices_switched.append((now_ns, enable))
            self._devices.toggle(enable)
