"""The fixture that proves that nothing stays behind: it finds each kind of leftover and puts it right."""

import builtins
import functools
import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import ModuleType

import leftovers
import pytest

import mtprof_nb

torch = pytest.importorskip("torch")


def _wrapped(function: Callable) -> Callable:
    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return wrapper


class _Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class _FunctionMode(torch.overrides.TorchFunctionMode):
    pass


class _Finder:
    """Stands for a finder of the package's own."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        return None


_Finder.__module__ = "mtprof_nb.somewhere"


def _swap_code() -> None:
    torch.nn.functional.relu.__code__ = (lambda *args, **kwargs: None).__code__


def _ours(callback: Callable[..., None]) -> Callable[..., None]:
    callback.__module__ = "mtprof_nb.anything"
    return callback


LEAVE: dict[str, Callable[[], object]] = {
    "torch.Tensor.__add__ is replaced": lambda: setattr(torch.Tensor, "__add__", _wrapped(torch.Tensor.__add__)),
    "torch.Tensor.__matmul__ is replaced": lambda: setattr(torch.Tensor, "__matmul__", lambda a, b: a),
    "torch.Tensor.marked is replaced": lambda: setattr(torch.Tensor, "marked", "yes"),
    "torch.autograd.backward is replaced": lambda: setattr(
        torch.autograd, "backward", functools.partial(torch.autograd.backward)
    ),
    "torch.optim.Optimizer.zero_grad is replaced": lambda: setattr(torch.optim.Optimizer, "zero_grad", print),
    "torch.nn.functional.relu has other code": _swap_code,
    "profiler 'forgotten' is active": lambda: mtprof_nb.profile(name="forgotten").start(),
    "torch's profiler is active": lambda: torch.autograd.profiler.profile(use_kineto=True).__enter__(),
    "_Mode": lambda: _Mode().__enter__(),
    "_FunctionMode": lambda: _FunctionMode().__enter__(),
    "_global_forward_hooks": lambda: torch.nn.modules.module.register_module_forward_hook(lambda *_: None),
    "threading.Thread.run is replaced": lambda: setattr(threading.Thread, "run", _wrapped(threading.Thread.run)),
    "builtins.mark_line is replaced": lambda: setattr(builtins, "mark_line", _wrapped(print)),
    "sys.settrace": lambda: sys.settrace(lambda *_: None),
    "sys.setprofile": lambda: sys.setprofile(lambda *_: None),
    "threading.setprofile": lambda: threading.setprofile(lambda *_: None),
    "sys.meta_path": lambda: sys.meta_path.append(_Finder()),
    "SIGINT": lambda: signal.signal(signal.SIGINT, lambda *_: None),
    "gc.isenabled": gc.disable,
    "gc.callbacks": lambda: gc.callbacks.append(_ours(lambda *_: None)),
}


@pytest.mark.parametrize("expected", LEAVE)
def test_what_stays_behind_is_named_and_put_right(expected: str) -> None:
    before = leftovers.snapshot()

    LEAVE[expected]()

    (found,) = leftovers.close(before)
    assert expected in found
    assert leftovers.close(before) == []


def test_an_undisturbed_process_has_no_leftovers() -> None:
    before = leftovers.snapshot()

    with torch.profiler.profile(), _Mode():
        torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()

    assert leftovers.close(before) == []


def test_what_torch_compile_changes_in_torch_is_no_leftover() -> None:
    before = leftovers.snapshot()

    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))

    assert leftovers.close(before) == []


@pytest.mark.parametrize("peer", leftovers.PEERS)
def test_a_changed_dispatcher_of_a_peer_is_named_and_put_right(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher, profiler = ModuleType("dispatcher"), ModuleType("profiler")
    dispatcher.is_profiler_enabled = is_enabled = lambda: False
    profiler._ACTIVE_SESSION = None
    monkeypatch.setitem(sys.modules, f"{peer}._dispatch.dispatcher", dispatcher)
    monkeypatch.setitem(sys.modules, f"{peer}.profiler.profiler", profiler)
    before = leftovers.snapshot()

    dispatcher.is_profiler_enabled = lambda: True
    profiler._ACTIVE_SESSION = object()

    assert leftovers.close(before) == [
        f"{peer}'s profiler is active",
        f"{peer}._dispatch.dispatcher.is_profiler_enabled is replaced",
    ]
    assert dispatcher.is_profiler_enabled is is_enabled
    assert profiler._ACTIVE_SESSION is None
