"""Everything that a profiler could leave in a process: a snapshot of it, and how to restore it."""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

PEERS = ("mindtorch_v2", "candle")
#: Classes and modules whose attributes somebody could replace, looked at where they are imported.
PATCHABLE = (
    "builtins",
    "threading.Thread",
    "torch",
    "torch._C.TensorBase",
    "torch._C._profiler",
    "torch._dynamo.callback.callback_handler",
    "torch.Tensor",
    "torch.UntypedStorage",
    "torch.autograd",
    "torch.autograd.Function",
    "torch.autograd.profiler",
    "torch.autograd.profiler.record_function",
    "torch.nn.Module",
    "torch.nn.functional",
    "torch.optim.Optimizer",
    "torch.profiler",
    "torch.profiler.profiler",
    *(
        f"{peer}.{name}"
        for peer in PEERS
        for name in ("Tensor", "_dispatch", "_dispatch.dispatcher", "optim.Optimizer", "profiler", "profiler.profiler")
    ),
)
#: Tables of callbacks that torch calls for every module or optimizer.
CALLBACKS = (
    *(
        f"torch.nn.modules.module._global_{kind}_hooks"
        for kind in ("forward", "forward_pre", "backward", "backward_pre", "module_registration")
    ),
    *(f"torch.optim.optimizer._global_optimizer_{kind}_hooks" for kind in ("pre", "post")),
)
#: What the interpreter holds one of: how to read it, and how to set it.
INTERPRETER: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "sys.settrace": (sys.gettrace, sys.settrace),
    "sys.setprofile": (sys.getprofile, sys.setprofile),
    "threading.settrace": (threading.gettrace, threading.settrace),
    "threading.setprofile": (threading.getprofile, threading.setprofile),
    "the SIGINT handler": (
        lambda: signal.getsignal(signal.SIGINT),
        lambda handler: signal.signal(signal.SIGINT, handler),
    ),
    "sys.setswitchinterval": (sys.getswitchinterval, sys.setswitchinterval),
    "gc.isenabled": (gc.isenabled, lambda enabled: gc.enable() if enabled else gc.disable()),
    "gc.callbacks of ours": (
        lambda: [callback for callback in gc.callbacks if callback.__module__.startswith("mtprof_nb")],
        lambda old: gc.callbacks.__setitem__(slice(None), [*old, *_callbacks_of_others()]),
    ),
}
MISSING = object()


def _callbacks_of_others() -> list[Any]:
    return [callback for callback in gc.callbacks if not callback.__module__.startswith("mtprof_nb")]


@dataclass(frozen=True)
class Snapshot:
    """The state of this process before a test."""

    interpreter: dict[str, Any]
    meta_path: list[Any]
    namespaces: dict[str, dict[str, Any]]
    #: The code of each function there: swapping it patches without replacing anything.
    codes: dict[int, Any]
    threads: set[threading.Thread]


def _lookup(dotted: str) -> Any:
    """The object of that name; None as long as its module is not imported."""
    module, attributes = dotted, []
    while module and module not in sys.modules:
        module, _, attribute = module.rpartition(".")
        attributes.insert(0, attribute)
    found: Any = sys.modules.get(module)
    for attribute in attributes:
        found = getattr(found, attribute, None)
    return found


def _namespaces() -> Iterator[tuple[str, Any, MutableMapping[str, Any]]]:
    for dotted in PATCHABLE:
        owner = _lookup(dotted)
        if owner is not None:
            yield dotted, owner, dict(vars(owner))
    for dotted in CALLBACKS:
        table = _lookup(dotted)
        if table is not None:
            yield dotted, table, dict(table)


def snapshot() -> Snapshot:
    """The present state of everything that `leftovers` compares."""
    namespaces = {dotted: dict(entries) for dotted, _, entries in _namespaces()}
    functions = [value for entries in namespaces.values() for value in entries.values()]
    return Snapshot(
        interpreter={name: read() for name, (read, _) in INTERPRETER.items()},
        meta_path=list(sys.meta_path),
        namespaces=namespaces,
        codes={id(value): value.__code__ for value in functions if isinstance(value, FunctionType)},
        threads=set(threading.enumerate()),
    )


def _maker(value: Any) -> str:
    """The module whose code made `value`, whatever name `functools.wraps` gave it."""
    for inside in ("fget", "__func__"):
        value = getattr(value, inside, value)
    if isinstance(value, FunctionType):
        return str(value.__globals__.get("__name__"))
    return type(value).__module__


def _by_the_library_itself(dotted: str, name: str, value: Any) -> bool:
    """Whether torch, or a peer, changed its own attribute: a cache filled, a submodule imported."""
    if dotted == "builtins":
        return name == "_" or _maker(value).partition(".")[0] == "IPython"
    plain = isinstance(value, ModuleType | bool | int | None) or name == "__warningregistry__"
    return plain or _maker(value).partition(".")[0] == dotted.partition(".")[0]


def _put_back(owner: Any, name: Any, old: Any) -> None:
    if isinstance(owner, dict):
        owner.pop(name, None)
        if old is not MISSING:
            owner[name] = old
    elif old is MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, old)


def _patched(before: Snapshot) -> Iterator[str]:
    for dotted, owner, now in list(_namespaces()):
        old = before.namespaces.get(dotted)
        if old is None:
            continue
        for name in old.keys() | now.keys():
            value, was = now.get(name, MISSING), old.get(name, MISSING)
            if value is not was and not _by_the_library_itself(dotted, name, value):
                _put_back(owner, name, was)
                yield f"{dotted}.{name} is replaced"
            code = before.codes.get(id(was))
            if code is not None and was.__code__ is not code:
                was.__code__ = code
                yield f"{dotted}.{name} has other code"


def _changed_interpreter(before: Snapshot) -> Iterator[str]:
    for name, (read, restore) in INTERPRETER.items():
        if read() != before.interpreter[name]:
            restore(before.interpreter[name])
            yield f"{name} is changed"
    # Libraries add finders when they are imported; none takes one away, and ours adds none.
    added = [finder for finder in sys.meta_path if finder not in before.meta_path]
    ours = [finder for finder in added if _maker(finder).startswith("mtprof_nb")]
    if ours or any(finder not in sys.meta_path for finder in before.meta_path):
        sys.meta_path[:] = before.meta_path
        yield "sys.meta_path is changed"


def _active_session() -> Iterator[str]:
    slot = sys.modules.get("mtprof_nb.capture.session")
    session = slot.active() if slot else None
    if session is not None:
        problem = ""
        try:
            if session.window is not None:
                session.stop()
        except Exception as error:
            problem = f", and cannot be stopped: {error!r}"
        slot.deactivate(session)
        yield f"profiler {session.options.name!r} is active{problem}"


def _active_in_torch() -> Iterator[str]:
    if "torch" not in sys.modules:
        return
    import torch
    from torch.overrides import _pop_mode as pop_function_mode
    from torch.utils._python_dispatch import _pop_mode as pop_dispatch_mode

    is_active = torch.autograd._profiler_enabled()
    if is_active or torch.autograd.profiler._is_profiler_enabled:
        torch.autograd._disable_profiler() if is_active else None
        torch.autograd.profiler._is_profiler_enabled = False
        yield "torch's profiler is active"
    while depth := torch._C._len_torch_dispatch_stack():
        mode = torch._C._get_dispatch_stack_at(depth - 1)
        # One that was entered has told torch's compiler, and tells it again as it is left.
        mode.__exit__(None, None, None) if getattr(mode, "old_dispatch_mode_flags", None) else pop_dispatch_mode()
        yield f"{mode!r} is active"
    while torch._C._len_torch_function_stack():
        yield f"{pop_function_mode()!r} is active"


def _active_in_peers() -> Iterator[str]:
    for runtime in PEERS:
        profiler = sys.modules.get(f"{runtime}.profiler.profiler")
        if profiler is not None and getattr(profiler, "_ACTIVE_SESSION", None) is not None:
            profiler._ACTIVE_SESSION = None
            yield f"{runtime}'s profiler is active"


def _running_threads(before: Snapshot) -> Iterator[str]:
    for thread in set(threading.enumerate()) - before.threads:
        if thread.name.startswith("mtprof"):
            thread.join(timeout=5)
            if thread.is_alive():
                yield f"thread {thread.name!r} runs on"


def _running_sampler() -> Iterator[str]:
    loading = sys.modules.get("mtprof_nb.capture.native.recorder_loading")
    recorder = loading._loaded if loading is not None else None
    if recorder is not None and recorder.stop_sampler() is not None:
        yield "the native sampler runs on"


def close(before: Snapshot) -> list[str]:
    """Put everything back as it was, and say what had to be."""
    return [
        *_active_session(),
        *_active_in_torch(),
        *_active_in_peers(),
        *_changed_interpreter(before),
        *_patched(before),
        *_running_threads(before),
        *_running_sampler(),
    ]
