"""The hook of MindTorch v2 and Candle on the stand-in, and all that it could have changed there."""

from typing import Any

from standin import minitensor as mt
from standin.minitensor._autograd import engine, node
from standin.minitensor._dispatch import dispatcher
from standin.minitensor._storage import _CPUUntypedStorage
from standin.minitensor.profiler import profiler as runtime_profiler

from mtprof_nb.capture.eager.eager_hook import EnterExitHook, Runtime
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import KINDS, Recorded, Trace

RUNTIME = Runtime(
    "standin.minitensor",
    engine="_autograd.engine",
    node="_autograd.node",
    cpu_storage=("_storage", "_CPUUntypedStorage"),
)
POINTS = ("is_profiler_enabled", "dispatch_op_enter", "dispatch_op_exit")
OWNERS = (
    runtime_profiler,
    runtime_profiler._RecordFunction,
    dispatcher,
    dispatcher._PendingOp,
    engine,
    node.Node,
    mt.nn.Module,
    mt.optim.Optimizer,
    mt.optim.SGD,
    _CPUUntypedStorage,
)


def runtime_state() -> list[Any]:
    """All that a hook could have changed in the runtime."""
    attributes = [{name: value for name, value in vars(owner).items() if name != "__doc__"} for owner in OWNERS]
    functions = [getattr(runtime_profiler, name) for name in POINTS]
    return [attributes, [(function.__code__, function.__defaults__) for function in functions]]


def new_hook(max_events: int = 1000, activities: frozenset[str] = frozenset({"CPU", "NPU"}), **flags: bool) -> Any:
    return EnterExitHook(RUNTIME, Request(activities=activities, recorded=Recorded(**flags), max_events=max_events))


def names_of(trace: Trace, kind: str = "op") -> list[str]:
    return [trace.names[name] for name in trace.name[trace.kind == KINDS.index(kind)]]
