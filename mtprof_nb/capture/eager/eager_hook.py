"""The hook of MindTorch v2 and Candle, which differ in names and in what is compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mtprof_nb.capture.buffers.autograd_links import link_by_node
from mtprof_nb.capture.buffers.buffer import OP_FIELDS, Buffer, fact_fields
from mtprof_nb.capture.buffers.freezing import Vocabulary, freeze
from mtprof_nb.capture.buffers.module_paths import ModulePaths
from mtprof_nb.capture.buffers.tensor_facts import dtype_name
from mtprof_nb.capture.eager.around_ops import follow_modules, follow_optimizers, follow_pipeline, follow_scopes
from mtprof_nb.capture.eager.dispatcher_points import EnterExitPoints
from mtprof_nb.capture.eager.eager_autograd import BackwardPasses
from mtprof_nb.capture.eager.storage_memory import StorageMemory
from mtprof_nb.capture.flops import flops_of
from mtprof_nb.capture.hook import Hook, Request, SoFar
from mtprof_nb.capture.interrupts import interrupts_held_back, run_all
from mtprof_nb.capture.patches import Patches
from mtprof_nb.errors import HookError
from mtprof_nb.model.trace import Trace

#: Common classes of arguments that are no tensors.
_NUMBERS = frozenset({int, float, bool, str, type(None)})
#: Activities of devices other than the CPU, and the runtime's device types.
_DEVICES = {"NPU": "npu", "CUDA": "cuda", "XPU": "xpu"}


@dataclass(frozen=True)
class Runtime:
    """Names of the modules and classes of one runtime."""

    package: str
    engine: str
    node: str
    #: The class that keeps a CPU tensor's buffer: its module, and its name.
    cpu_storage: tuple[str, str]
    profiler: str = "profiler.profiler"
    dispatcher: str = "_dispatch.dispatcher"

    def part(self, name: str) -> Any:
        """Import one of its modules; `HookError` where this version lacks it."""
        try:
            return import_module(f"{self.package}.{name}" if name else self.package)
        except ImportError as error:
            msg = f"{self.package} has no module {name!r}: its version is not one that this hook knows ({error})"
            raise HookError(msg) from error


class EnterExitHook(Hook):
    """Records the ops that the runtime's dispatcher runs, on every thread."""

    def __init__(self, runtime: Runtime, request: Request) -> None:
        self._runtime = runtime
        self._request = request
        self._package = runtime.part("")
        self._profiler = runtime.part(runtime.profiler)
        self._points = EnterExitPoints(self._profiler)
        self._patches = Patches()
        self._activities = request.activities
        self._is_recording = False
        recorded = request.recorded
        module, name = runtime.cpu_storage
        storage = getattr(runtime.part(module), name) if recorded.profile_memory else None
        self._memory = None if storage is None else StorageMemory(self._package, storage)
        self._buffer = Buffer(request, (*OP_FIELDS, *self._fact_fields()))
        self._modules = ModulePaths(self._buffer) if recorded.with_modules else None
        self._passes = BackwardPasses(self._buffer, runtime.part(runtime.engine), runtime.part(runtime.node))

    def start(self) -> None:
        """Record from here on; `HookError` where this version of the runtime lacks an attribute to patch."""
        try:
            self._follow()
        except AttributeError as error:
            msg = f"{self._runtime.package} is not a version that this hook knows ({error}): update mtprof_nb"
            raise HookError(msg) from error
        self._is_recording = True
        self._listen()

    def _follow(self) -> None:
        part, patches, buffer = self._runtime.part, self._patches, self._buffer
        self._passes.install(patches)
        follow_pipeline(patches, part(self._runtime.dispatcher)._PendingOp, self._points, buffer)
        follow_optimizers(patches, part("optim").Optimizer, buffer)
        follow_scopes(patches, self._profiler._RecordFunction, buffer)
        if self._memory is not None:
            self._memory.install(patches)
        if self._modules is not None:
            follow_modules(patches, part("nn").Module, self._modules)

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        self._remove()
        vocabulary = Vocabulary(
            name=_name,
            device=_device,
            dtype=dtype_name,
            link=link_by_node,
            is_engine=self._passes.is_engine,
            folder=str(Path(self._package.__file__).parent),
        )
        return freeze(self._buffer, vocabulary)

    def so_far(self) -> SoFar | None:
        return self._buffer.so_far()

    def abandon(self) -> None:
        self._remove()
        self._buffer.discard()

    def _remove(self) -> None:
        """Leave the runtime as it was found; a second call does nothing."""
        self._is_recording = False
        with interrupts_held_back():
            run_all(self._points.remove, self._patches.undo)
        if self._memory is not None:
            self._memory.forget()

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:  # noqa: ARG002 - for Kineto alone
        return self._buffer.scope(name)

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        self._activities = self._activities | activities if enable else self._activities - activities
        self._points.remove()
        if self._is_recording:
            self._listen()

    def _listen(self) -> None:
        if self._activities:
            held = self._memory.held if self._memory is not None else None
            self._points.install(self._buffer, self._left_out(), self._fact_reader(), held)

    def _left_out(self) -> Any:
        """Device types whose ops are not recorded; empty where this machine has none of them."""
        off = {device for activity, device in _DEVICES.items() if activity not in self._activities}
        if "CPU" in self._activities:
            present = [device for device in off if _is_available(self._package, device)]
            return frozenset(name for device in present for name in (device, *(f"{device}:{n}" for n in range(64))))
        return _AllBut(frozenset(_DEVICES.values()) - off)

    def _fact_fields(self) -> tuple[str, ...]:
        recorded = self._request.recorded
        return (*fact_fields(recorded), *(("before", "after") if recorded.profile_memory else ()))

    def _fact_reader(self) -> Callable[[str, Any, Any, Any], list[Any]] | None:
        """A function that reads the fields of `_fact_fields`, but for `after`, as an op begins."""
        recorded, stacks, local, memory = self._request.recorded, self._buffer.stacks, self._buffer.local, self._memory
        shapes = shape_reader(self._package.Tensor, self._runtime.part("nn").Parameter)
        with_shapes, with_flops, with_modules = recorded.record_shapes, recorded.with_flops, recorded.with_modules
        if not self._fact_fields():
            return None

        def read(name: str, device: Any, args: Any, kwargs: Any) -> list[Any]:
            facts: list[Any] = []
            if stacks is not None:
                facts.append(stacks.capture(sys._getframe(1)))
            if with_shapes:
                facts.append(shapes(args, kwargs))
            if with_flops:
                facts.append(flops_of(name, args))
            if with_modules:
                running = local.records.modules
                facts.append(running[-1][1] if running else None)
            if memory is not None:
                facts.append(memory.held(device))
            return facts

        return read


class _AllBut:
    """Every device type but these."""

    def __init__(self, kept: frozenset[str]) -> None:
        self._kept = kept

    def __contains__(self, device_type: str) -> bool:
        return device_type.partition(":")[0] not in self._kept


def _is_available(package: Any, device: str) -> bool:
    module = getattr(package, device, None)
    return module is not None and bool(module.is_available())


def shape_reader(*tensors: Any) -> Callable[[Any, Any], tuple[tuple[Any, Any], ...]]:
    """A function of an op's arguments: shape and element type of each, `((), None)` of one that is no tensor."""
    exactly = frozenset(tensors)
    base = tensors[0]
    nothing = ((), None)
    # One copy of each: the garbage collector would scan thousands of equal ones again and again.
    known: dict[tuple[Any, ...], tuple[tuple[Any, Any], ...]] = {}

    def read(args: Any, kwargs: Any) -> tuple[tuple[Any, Any], ...]:
        key: list[Any] = []
        for value in args:
            kind = value.__class__
            if kind in exactly:
                # An element type is one object as long as the runtime lives.
                key += (tuple(value.shape), id(value.dtype))
            else:
                key.append(nothing if kind in _NUMBERS else entry(value))
        if kwargs:
            key += [shaped for value in kwargs.values() if (shaped := entry(value)) is not nothing]
        same = known.get(whole := tuple(key))
        if same is None:
            named = [shaped for value in kwargs.values() if (shaped := entry(value)) is not nothing]
            same = known[whole] = (*map(entry, args), *named)
        return same

    def entry(value: Any) -> tuple[Any, Any]:
        try:
            if isinstance(value, base):
                return tuple(value.shape), value.dtype
            if isinstance(value, list | tuple) and value and isinstance(value[0], base):
                return tuple(tuple(item.shape) if isinstance(item, base) else () for item in value), value[0].dtype
        except Exception:  # a subclass may fail here; the op itself will raise, or not
            return nothing
        return nothing

    return read


def _name(raw: str) -> tuple[str, str]:
    return (raw if "::" in raw else f"aten::{raw}"), ""


def _device(raw: Any) -> tuple[str, int]:
    """Type and index of a device, or of text such as `npu:1`."""
    kind = getattr(raw, "type", None)
    if kind is not None:
        return str(kind).upper(), int(raw.index or 0)
    text, _, index = str(raw or "cpu").partition(":")
    return text.upper(), int(index) if index.isdigit() else 0
