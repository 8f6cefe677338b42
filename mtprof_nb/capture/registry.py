"""The hooks there are, and all that the package knows of each. A new hook is its own folder and an entry here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mtprof_nb.capture.torch_private.operators import DISPATCH_MODULES
from mtprof_nb.errors import HookError
from mtprof_nb.model.source_files import RUNTIMES


@dataclass(frozen=True)
class HookKind:
    """A hook's name, its runtime and devices, its cost, and the modules that stacks leave out."""

    name: str
    #: The module that a program imports to use the hook's runtime; "" where it needs none.
    runtime: str
    #: The hook's class, as "module:class"; it takes a `capture.hook.Request`.
    factory: str
    #: An estimate of the time that recording adds to an event, in nanoseconds, measured on programs of small ops.
    event_ns: int = 0
    #: A function of a trace, as "module:function", that estimates the time of all its events instead.
    cost: str = ""
    #: The time that each flag of `Recorded` adds to that; None: some flags add half of `event_ns` each.
    flag_ns: Mapping[str, int] | None = None
    #: The device types other than the CPU whose events it can record now, by its runtime's imported module.
    devices: Callable[[Any], Iterable[str]] = lambda _runtime: ()
    #: Whether it is written in Python: then it takes its time between the ops, not inside them.
    runs_in_python: bool = False
    #: Whether hook `auto` takes it where its runtime is imported.
    is_default: bool = True
    #: A function of a request, as "module:function": whether `auto` takes this hook before all others of its runtime.
    is_preferred: str = ""
    #: Whether it records everything that a flag may ask for at little cost: the magic then does so by default.
    is_cheap: bool = False
    #: Modules that run between an op and the hook: stacks leave their frames out.
    hidden_modules: tuple[str, ...] = ()
    #: Whether its scopes reach other listeners of torch, such as torch's own profiler.
    reaches_torch: bool = False

    def __post_init__(self) -> None:
        if self.runtime:
            RUNTIMES.setdefault(self.runtime)

    @property
    def runtime_is_imported(self) -> bool:
        """Whether the program has imported the hook's runtime."""
        return self.runtime in sys.modules

    def make(self, request: Any) -> Any:
        """A hook ready to start; `HookError` where its runtime is not installed."""
        if self.runtime and not self.runtime_is_imported and find_spec(self.runtime) is None:
            msg = f"hook {self.name!r} needs {self.runtime!r}, which is not installed: install it, or use hook='auto'"
            raise HookError(msg)
        return _named(self.factory)(request)

    def is_preferred_for(self, request: Any) -> bool:
        """Whether `auto` takes this hook for `request` instead of the default one of its runtime."""
        return bool(self.is_preferred) and self.runtime_is_imported and _named(self.is_preferred)(request)

    def cost_ns(self, trace: Any, count: int) -> int:
        """The estimate for `count` events of `trace`."""
        if self.cost:
            return int(_named(self.cost)(trace))
        usual = dict.fromkeys(("record_shapes", "profile_memory", "with_modules"), self.event_ns // 2)
        flag_ns = usual if self.flag_ns is None else self.flag_ns
        return count * (self.event_ns + sum(ns for flag, ns in flag_ns.items() if getattr(trace.recorded, flag)))


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _torch_devices(torch: Any) -> list[str]:
    profiler = getattr(torch, "profiler", None)  # None while torch is being imported
    names = [activity.name for activity in profiler.supported_activities()] if profiler is not None else []
    return [*names, *(["NPU"] if hasattr(torch, "npu") else [])]


def _npu(runtime: Any) -> list[str]:
    npu = getattr(runtime, "npu", None)
    return ["NPU"] if npu is not None and npu.is_available() else []


HOOK_KINDS = {
    kind.name: kind
    for kind in (
        HookKind(
            "native",
            "torch",
            "mtprof_nb.capture.native.native_hook:NativeHook",
            cost="mtprof_nb.capture.native.native_cost:cost_ns",
            is_default=False,
            is_preferred="mtprof_nb.capture.native.native_hook:serves",
            is_cheap=True,
            hidden_modules=DISPATCH_MODULES,
            reaches_torch=True,
        ),
        HookKind(
            "kineto",
            "torch",
            "mtprof_nb.capture.kineto.kineto_hook:KinetoHook",
            devices=_torch_devices,
            event_ns=600,
            hidden_modules=DISPATCH_MODULES,
            reaches_torch=True,
        ),
        HookKind(
            "mindtorch_v2",
            "mindtorch_v2",
            "mtprof_nb.capture.eager.runtimes:MindTorchHook",
            devices=_npu,
            event_ns=1_700,
            runs_in_python=True,
            hidden_modules=("mindtorch_v2._dispatch", "mindtorch_v2.profiler"),
        ),
        HookKind(
            "candle",
            "candle",
            "mtprof_nb.capture.eager.runtimes:CandleHook",
            devices=_npu,
            event_ns=1_700,
            runs_in_python=True,
            hidden_modules=("candle._dispatch", "candle.profiler"),
        ),
    )
}
#: Scopes alone, recorded where no runtime is imported.
SCOPES_ALONE = HookKind("scopes", "", "mtprof_nb.capture.buffers.scopes_hook:ScopesHook", event_ns=600)


def default_hooks() -> list[HookKind]:
    """The hooks that `auto` takes, where their runtimes are imported."""
    return [kind for kind in HOOK_KINDS.values() if kind.is_default]


def hooks_for(name: str, request: Any) -> list[HookKind]:
    """The hooks that record `request` by the hook `name`; for `auto`, one for each runtime imported (perhaps none)."""
    if name == "auto":
        return [preferred(kind, request) for kind in default_hooks() if kind.runtime_is_imported]
    if name not in HOOK_KINDS:
        msg = f"unknown hook {name!r}: use 'auto' or one of {', '.join(HOOK_KINDS)}"
        raise HookError(msg)
    return [HOOK_KINDS[name]]


def preferred(kind: HookKind, request: Any) -> HookKind:
    """The hook that `auto` takes for `request` in the place of `kind`, or `kind` itself."""
    others = (one for one in HOOK_KINDS.values() if one.runtime == kind.runtime)
    return next((one for one in others if one.is_preferred_for(request)), kind)
