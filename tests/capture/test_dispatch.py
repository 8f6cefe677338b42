"""Hook `dispatch` on PyTorch itself."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from mtprof_nb.capture.dispatch import DispatchHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.errors import MtprofWarning
from mtprof_nb.trace import KINDS, PHASES, Recorded, Trace

EVERY_FLAG = {
    "record_shapes": True,
    "with_stack": True,
    "profile_memory": True,
    "with_flops": True,
    "with_modules": True,
}


def _hook(max_events: int = 100_000, activities: frozenset[str] = frozenset({"CPU"}), **flags: bool) -> DispatchHook:
    return DispatchHook(Request(activities=activities, recorded=Recorded(**flags), max_events=max_events))


def _record(program: Callable[[], Any], **flags: bool) -> Trace:
    hook = _hook(**flags)
    hook.prepare()
    hook.start()
    try:
        program()
    finally:
        trace = hook.stop()
    return trace


def _names(trace: Trace, kind: str = "op") -> list[str]:
    return [trace.names[name] for name in trace.name[trace.kind == KINDS.index(kind)]]


def _row(trace: Trace, name: str, phase: str = "forward") -> int:
    matches = [
        row for row in range(len(trace)) if trace.names[trace.name[row]] == name and PHASES[trace.phase[row]] == phase
    ]
    return matches[0]


def _stack(trace: Trace, row: int) -> list[tuple[int, str]]:
    """Lines and functions of the frames of this file, innermost first."""
    assert trace.stacks is not None
    assert trace.stack is not None
    return [
        (frame.line, frame.function) for frame in trace.stacks.stack(int(trace.stack[row])) if frame.file == __file__
    ]


def _line() -> int:
    return sys._getframe(1).f_lineno


def test_aten_ops_are_recorded_with_name_overload_and_device() -> None:
    trace = _record(lambda: torch.ones(2) + torch.ones(2))

    assert _names(trace) == ["aten::ones", "aten::ones", "aten::add"]
    assert trace.overload is not None
    assert [trace.overloads[at] if at >= 0 else "" for at in trace.overload] == ["", "", "Tensor"]
    assert {trace.devices[device] for device in trace.device} == {"CPU"}
    assert trace.correlation_id.tolist() == [1, 2, 3]
    assert trace.threads[0].name == "MainThread"
    assert trace.began_ns <= trace.start_ns[0] <= trace.end_ns[-1] <= trace.ended_ns


def test_forward_backward_and_optimizer_are_recorded_with_their_phases() -> None:
    model, x = nn.Linear(3, 2), torch.rand(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    trace = _record(step)
    phases = [(trace.names[name], PHASES[phase]) for name, phase in zip(trace.name, trace.phase, strict=True)]
    assert ("aten::addmm", "forward") in phases
    assert ("aten::mm", "backward") in phases
    assert ("aten::add_", "optimizer") in phases
    assert ("Optimizer.step#SGD.step", "optimizer") in phases


def test_the_gradient_that_backward_begins_with_is_of_the_backward_pass() -> None:
    x = torch.ones(2, requires_grad=True)

    def program() -> None:
        torch.ones_like(x)
        (x * 2).sum().backward()
        torch.ones_like(x)

    trace = _record(program)
    phases = [PHASES[phase] for phase, name in zip(trace.phase, _names(trace), strict=True) if name.endswith("_like")]
    assert phases == ["forward", "backward", "forward"]


def test_an_op_of_the_backward_pass_is_linked_to_the_op_that_made_its_node() -> None:
    weight, x = torch.rand(3, 2, requires_grad=True), torch.rand(4, 3)
    trace = _record(lambda: (x @ weight).relu().sum().backward())

    def maker(name: str) -> str:
        row = _row(trace, name, "backward")
        return trace.names[trace.name[trace.forward[row]]]

    assert maker("aten::expand") == "aten::sum"
    assert maker("aten::threshold_backward") == "aten::relu"
    assert maker("aten::mm") == "aten::mm"
    assert trace.sequence_nr[_row(trace, "aten::mm")] == trace.sequence_nr[_row(trace, "aten::mm", "backward")]
    assert trace.forward[_row(trace, "aten::relu")] == -1


def test_every_link_of_a_training_step_is_to_the_op_that_autograd_names() -> None:
    expected = {
        "AddmmBackward0": "aten::addmm",
        "TBackward0": "aten::t",
        "ReluBackward0": "aten::relu",
        "MeanBackward0": "aten::mean",
    }
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.rand(5, 3)
    running: list[str] = []

    class Nodes(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            node = torch._C._current_autograd_node()
            if node is not None and node.name() in expected:
                running.append(expected[node.name()])
            return func(*args, **(kwargs or {}))

    def step() -> None:
        with Nodes():
            model(x).mean().backward()

    trace = _record(step)
    assert [trace.names[trace.name[row]] for row in trace.forward if row >= 0] == running
    assert len(running) > 10


def test_writing_into_a_view_is_linked_to_the_op_that_wrote() -> None:
    def program() -> None:
        a = torch.ones(4, requires_grad=True)
        b = a * 1
        b[1:] = 2
        b.sum().backward()

    trace = _record(program)
    row = _row(trace, "aten::as_strided", "backward")
    assert trace.names[trace.name[trace.forward[row]]] == "aten::fill_"


def test_stacks_have_the_exact_line_of_calls_operators_and_multi_line_expressions() -> None:
    lines = {}

    def program() -> None:
        a = torch.rand(2, 2)
        lines["aten::mul"] = _line() + 1
        b = a * a
        lines["aten::cat"] = _line() + 2
        joined = {
            "joined": torch.cat([a, b]),
        }
        assert len(joined) == 1

    trace = _record(program, with_stack=True)
    for name, line in lines.items():
        assert _stack(trace, _row(trace, name))[0] == (line, "program")


def test_no_frame_of_the_profiler_or_of_torchs_dispatch_is_on_a_stack() -> None:
    def program() -> None:
        with torch.profiler.record_function("scope"):
            torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2))

    trace = _record(program, with_stack=True)
    assert trace.stacks is not None
    files = {frame.file for frame in trace.stacks.frames}
    assert not [file for file in files if "mtprof_nb/" in file and "/tests/" not in file]
    assert not [
        file for file in files if file.endswith(("_python_dispatch.py", "torch/_ops.py", "autograd/profiler.py"))
    ]


def test_backward_ops_carry_the_forward_stack_and_say_so() -> None:
    weight = torch.rand(2, requires_grad=True)
    lines = {}

    def program() -> None:
        lines["forward"] = _line() + 1
        y = weight.exp()
        y.sum().backward()

    trace = _record(program, with_stack=True)
    row = _row(trace, "aten::mul", "backward")
    assert _stack(trace, row)[0] == (lines["forward"], "program")
    assert trace.stack_is_forward is not None
    assert trace.stack_is_forward[row]
    assert not trace.stack_is_forward[_row(trace, "aten::exp")]


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


def test_a_backward_written_in_python_keeps_its_own_stack() -> None:
    x = torch.rand(2, requires_grad=True)
    trace = _record(lambda: _Doubled.apply(x).sum().backward(), with_stack=True)

    row = _row(trace, "aten::mul", "backward")
    assert _stack(trace, row)[0][1] == "backward"
    assert trace.stack_is_forward is not None
    assert not trace.stack_is_forward[row]
    assert trace.names[trace.name[trace.forward[row]]] == "aten::mul"


def test_what_a_checkpoint_computes_again_keeps_its_own_stack() -> None:
    x = torch.rand(2, requires_grad=True)

    def body(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    trace = _record(lambda: checkpoint(body, x, use_reentrant=False).sum().backward(), with_stack=True)
    row = _row(trace, "aten::exp", "backward")
    assert _stack(trace, row)[0][1] == "body"
    assert trace.stack_is_forward is not None
    assert not trace.stack_is_forward[row]


def test_torchs_record_function_is_a_scope_and_no_op_and_an_exception_closes_it() -> None:
    @torch.profiler.record_function("outer")
    def failing() -> None:
        with torch.profiler.record_function("inner"):
            torch.ones(1)
        raise KeyError("mine")

    def program() -> None:
        with pytest.raises(KeyError):
            failing()

    trace = _record(program)
    assert _names(trace) == ["aten::ones"]
    assert _names(trace, "scope") == ["outer", "inner"]
    outer, inner, op = trace.end_ns.tolist()
    assert op <= inner <= outer <= trace.ended_ns


def test_a_scope_of_the_hooks_own_nests_with_torchs() -> None:
    hook = _hook()
    hook.start()
    with hook.scope("mine"), torch.profiler.record_function("torch's"), hook.scope("mine again"):
        pass
    trace = hook.stop()

    assert _names(trace, "scope") == ["mine", "torch's", "mine again"]
    assert not trace.is_async.any()


def test_shapes_are_of_tensors_of_lists_and_of_keywords() -> None:
    a, b = torch.rand(2, 3), torch.rand(2, 3)

    def program() -> None:
        torch.cat([a, b], 1)
        torch.add(input=a, other=b, alpha=2)
        torch.ones_like(a)
        torch.add(a, b, out=torch.empty(2, 3))

    trace = _record(program, record_shapes=True)
    assert trace.shape is not None
    shapes = [trace.shapes[shape] for shape in trace.shape]
    assert shapes == [
        (((2, 3), (2, 3)), ()),
        ((2, 3), (2, 3)),
        ((2, 3),),
        ((),),
        ((2, 3), (2, 3), (2, 3)),
    ]
    assert all(type(size) is int for size in shapes[1][0])
    assert trace.dtypes[trace.shape[1]] == ("float", "float")


def test_operations_come_from_torchs_formulas() -> None:
    convolution, image = nn.Conv2d(3, 4, 3, bias=False), torch.rand(1, 3, 8, 8)

    def program() -> None:
        torch.rand(2, 3) @ torch.rand(3, 4)
        torch.rand(5, 3) @ torch.rand(3, 4)
        convolution(image)

    trace = _record(program, with_flops=True)
    assert trace.flops is not None
    counted = [(trace.names[name], flops) for name, flops in zip(trace.name, trace.flops.tolist(), strict=True)]
    assert [pair for pair in counted if pair[1] >= 0] == [
        ("aten::mm", 2 * 2 * 3 * 4),
        ("aten::mm", 2 * 5 * 3 * 4),
        ("aten::convolution", 2 * 4 * 6 * 6 * 3 * 3 * 3),
    ]


def test_modules_are_named_by_their_path_in_forward_and_backward() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x).exp()

    model, x = Net(), torch.rand(2, 3)
    trace = _record(lambda: model(x).sum().backward(), with_modules=True)

    def module(name: str, phase: str = "forward") -> str | None:
        assert trace.module is not None
        at = trace.module[_row(trace, name, phase)]
        return trace.modules[at] if at >= 0 else None

    assert module("aten::addmm") == "Net.body.0"
    assert module("aten::relu") == "Net.body.1"
    assert module("aten::exp") == "Net"
    assert module("aten::sum") is None
    assert module("aten::threshold_backward", "backward") == "Net.body.1"
    assert module("aten::mm", "backward") == "Net.body.0"


def test_cpu_memory_is_the_allocators_own_and_belongs_to_the_op() -> None:
    def program() -> None:
        kept = torch.empty(1000, dtype=torch.uint8)
        gone = torch.empty(500, dtype=torch.uint8)
        del gone
        kept.clone()

    trace = _record(program, profile_memory=True)
    assert trace.allocations is not None
    assert trace.allocations.nbytes.tolist() == [1000, 500, -500, 1000, -1000, -1000]
    assert trace.allocations.event.tolist() == [0, 1, -1, 2, -1, -1]
    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert (trace.memory_after - trace.memory_before).tolist() == [1000, 500, 1000]


def test_without_kineto_cpu_memory_is_missing_and_one_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.profiler, "kineto_available", lambda: False)
    with pytest.warns(MtprofWarning, match="no Kineto and tells nothing of CPU memory") as warned:
        trace = _record(lambda: torch.ones(2), profile_memory=True)

    assert len(warned) == 1
    assert trace.memory_before is not None
    assert trace.memory_before.tolist() == [-1]


def test_threads_started_meanwhile_are_recorded_on_lanes_of_their_own() -> None:
    def program() -> None:
        torch.ones(1)
        worker = threading.Thread(target=lambda: torch.zeros(1).exp(), name="worker")
        worker.start()
        worker.join()

    trace = _record(program)
    lanes = [(trace.names[name], trace.threads[lane].name) for name, lane in zip(trace.name, trace.thread, strict=True)]
    assert lanes == [("aten::ones", "MainThread"), ("aten::zeros", "worker"), ("aten::exp", "worker")]


def test_work_given_to_an_older_thread_of_a_pool_is_recorded() -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        pool.submit(lambda: None).result()
        trace = _record(lambda: pool.submit(torch.ones, 1).result())
        modes = pool.submit(torch._C._len_torch_dispatch_stack).result()

    assert [(trace.names[0], trace.threads[0].name)] == [("aten::ones", "pool_0")]
    assert modes == 0


def test_a_thread_that_outlives_the_recording_goes_on_unrecorded() -> None:
    go_on, results = threading.Event(), []

    def work() -> None:
        torch.ones(1)
        running.set()
        go_on.wait()
        results.append(torch.ones(2).sum().item())

    running = threading.Event()
    thread = threading.Thread(target=work)

    def program() -> None:
        thread.start()
        running.wait()

    trace = _record(program)
    go_on.set()
    thread.join()

    assert _names(trace) == ["aten::ones"]
    assert results == [2.0]


def test_a_users_exception_passes_unchanged_and_the_op_is_recorded() -> None:
    hook = _hook(**EVERY_FLAG)
    hook.prepare()
    hook.start()
    try:
        with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
            torch.rand(2, 3) @ torch.rand(2, 3)
    finally:
        trace = hook.stop()

    assert type(caught.value) is RuntimeError
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert _names(trace)[-1] == "aten::mm"


def test_nothing_stays_after_a_start_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_mode: Any) -> None:
        raise RuntimeError("no more modes")

    original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
    hook = _hook()
    with monkeypatch.context() as patch:
        patch.setattr(torch.utils._python_dispatch, "_push_mode", refused)
        with pytest.raises(RuntimeError, match="no more modes"):
            hook.start()
        assert len(hook.stop()) == 0

    assert threading.Thread._bootstrap_inner is original  # type: ignore[attr-defined]
    assert torch._C._len_torch_dispatch_stack() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_left_without_the_mode_and_the_parent_goes_on() -> None:
    hook = _hook()
    hook.start()
    child = os.fork()
    if not child:
        hook.abandon()
        os._exit(torch._C._len_torch_dispatch_stack())
    _, status = os.waitpid(child, 0)
    torch.ones(1)
    trace = hook.stop()

    assert os.waitstatus_to_exitcode(status) == 0
    assert _names(trace) == ["aten::ones"]


class _Foreign(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_users_that_outlives_the_recording_stays_in_force() -> None:
    hook, foreign = _hook(), _Foreign()
    hook.start()
    with foreign:
        torch.ones(1)
        trace = hook.stop()
        assert torch._C._len_torch_dispatch_stack() == 1
        assert torch._C._get_dispatch_stack_at(0) is foreign

    assert _names(trace) == ["aten::ones"]


def _on_another_thread(act: Callable[[], Any]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_stopping_on_another_thread_leaves_that_threads_modes_alone() -> None:
    hook = _hook()
    hook.start()
    torch.ones(1)
    found: list[Any] = []

    def stop() -> None:
        with _Foreign():
            found.append(hook.stop())
            found.append(torch._C._len_torch_dispatch_stack())

    with pytest.warns(MtprofWarning, match="stopped on another thread"):
        _on_another_thread(stop)
    torch.ones(1)
    hook.stop()

    assert (_names(found[0]), found[1]) == (["aten::ones"], 1)


def test_a_mode_that_another_thread_could_not_remove_goes_with_the_next_recording() -> None:
    hook, foreign = _hook(), _Foreign()
    hook.start()
    with pytest.warns(MtprofWarning, match="stop it on the thread that starts it"):
        _on_another_thread(hook.stop)
    assert torch._C._len_torch_dispatch_stack() == 1
    with foreign:
        trace = _record(lambda: torch.zeros(1))
        assert torch._C._get_dispatch_stack_at(0) is foreign

    assert torch._C._len_torch_dispatch_stack() == 0
    assert _names(trace) == ["aten::zeros"]


def test_a_recording_that_a_thread_left_to_others_when_it_ended_is_stopped_in_silence() -> None:
    hook = _hook()

    def begin() -> None:
        hook.start()
        torch.ones(1)

    _on_another_thread(begin)

    assert _names(hook.stop()) == ["aten::ones"]


def test_results_and_random_numbers_are_the_same_with_and_without_a_recording() -> None:
    def program() -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        loss = model(torch.rand(5, 3)).square().mean()
        loss.backward()
        return [loss.item(), *(float(parameter.grad.sum()) for parameter in model.parameters())]

    found: list[list[float]] = []
    _record(lambda: found.append(program()), **EVERY_FLAG)
    assert found == [program()]


def test_no_tensor_is_kept_alive_by_the_recording() -> None:
    hook = _hook(**EVERY_FLAG)
    hook.prepare()
    hook.start()
    model = nn.Linear(3, 2)
    a = torch.rand(2, 3)
    result = model(a)
    result.sum().backward()
    references = [weakref.ref(a), weakref.ref(result), weakref.ref(model.weight)]
    del a, result, model
    gc.collect()
    alive = [reference() for reference in references]
    hook.stop()

    assert alive == [None, None, None]


def test_recording_stops_at_the_limit_and_counts_what_it_dropped() -> None:
    hook = _hook(max_events=3)
    hook.start()
    for _ in range(5):
        torch.ones(1)
    with pytest.warns(MtprofWarning, match="2 more events were dropped"):
        trace = hook.stop()

    assert (len(trace), trace.dropped) == (3, 2)


def test_ops_of_an_activity_that_is_off_are_not_recorded() -> None:
    hook = _hook()
    hook.start()
    torch.ones(1)
    hook.toggle(False, frozenset({"CPU"}))
    torch.zeros(1)
    hook.toggle(True, frozenset({"CPU"}))
    torch.rand(1)
    trace = hook.stop()

    assert _names(trace) == ["aten::ones", "aten::rand"]


def test_with_every_flag_off_shapes_stacks_and_modules_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_args: Any) -> Any:
        raise AssertionError("read, though nobody asked for it")

    for name in ("tensor_facts.TensorFacts.shapes", "tensor_facts.TensorFacts.flops", "stacks.Stacks.capture"):
        monkeypatch.setattr(f"mtprof_nb.capture.{name}", read)
    monkeypatch.setattr("mtprof_nb.capture.module_paths.ModulesOnStack.path", read)
    trace = _record(lambda: torch.ones(1))

    optional = (trace.shape, trace.stack, trace.memory_before, trace.flops, trace.module, trace.allocations)
    assert optional == (None,) * 6


class _Logged(torch.Tensor):
    called: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.called.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_reading_a_subclass_does_not_call_its_torch_function() -> None:
    def program() -> list[str]:
        x = torch.rand(2).as_subclass(_Logged).requires_grad_()
        loss = (x * x).sum()
        _Logged.called.clear()
        loss.backward()
        return list(_Logged.called)

    found: list[list[str]] = []
    _record(lambda: found.append(program()), **EVERY_FLAG)
    assert found == [program()]


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.ones(3, device="meta") + 1,
        lambda: torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 3)),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2,
        lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)], layout=torch.jagged) * 2,
        lambda: torch.func.vmap(torch.dot)(torch.ones(3, 4), torch.ones(3, 4)),
        lambda: torch.func.grad(lambda x: (x * x).sum())(torch.ones(3)),
        lambda: torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),)),
        lambda: torch.func.hessian(lambda x: (x**3).sum())(torch.ones(3)),
        lambda: torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.ones(2),)),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize(),
        lambda: list(torch.utils.data.DataLoader(torch.arange(4), batch_size=2)),
        lambda: str(torch.ones(2)),
    ],
    ids=["meta", "sparse", "nested", "jagged", "vmap", "grad", "jvp", "hessian", "cond", "quantized", "loader", "str"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_of_every_kind_are_tolerated(program: Callable[[], Any]) -> None:
    trace = _record(program, **{**EVERY_FLAG, "profile_memory": False})

    assert len(trace) > 0
    assert trace.shape is not None


def test_fake_tensors_are_recorded_where_they_claim_to_be() -> None:
    from torch._subclasses import FakeTensorMode

    def program() -> None:
        with FakeTensorMode():
            torch.ones(3, 3) @ torch.ones(3, 3)

    assert _names(_record(program, record_shapes=True)) == ["aten::ones", "aten::ones", "aten::mm"]


COMPILED = """
import sys
import torch
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters
from mtprof_nb.capture.dispatch import DispatchHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.trace import Recorded

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
flags = dict(record_shapes=True, with_stack=True, profile_memory=True, with_flops=True, with_modules=True)


def function(x):
    y = model(x).sin()
    return (y + y.sum().item()).sum()


def counts(order):
    torch._dynamo.reset()
    counters.clear()
    counter = CompileCounter()
    compiled = torch.compile(function, backend=counter)
    for recorded in order:
        hook = DispatchHook(Request(recorded=Recorded(**flags)))
        if recorded:
            hook.prepare()
            hook.start()
        for _ in range(2):
            compiled(torch.ones(2, 4, requires_grad=True)).backward()
        if recorded:
            assert len(hook.stop()) > 20
    return counter.frame_count, counter.op_count, dict(counters["frames"]), len(counters["graph_break"])


assert counts([False, False]) == counts([False, True]) == counts([True, False]), "recompiled, or broken"
print("as compiled without us")
"""


def test_a_compiled_function_keeps_its_graphs_and_is_not_compiled_again() -> None:
    ran = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "as compiled without us", ran.stderr[-2000:]


def test_the_hook_does_not_import_the_compiler() -> None:
    program = (
        "import sys, torch\n"
        "from mtprof_nb.capture.dispatch import DispatchHook\n"
        "from mtprof_nb.capture.hook import Request\n"
        "hook = DispatchHook(Request())\n"
        "hook.start()\n"
        "(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "assert len(hook.stop()) > 3\n"
        "print('torch._dynamo' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


NPU = """
import torch
from standin import npu_device

npu_device.register()

import mtprof_nb.capture.dispatch as dispatch
from mtprof_nb.capture.hook import Request
from mtprof_nb.trace import PHASES, Recorded

weight = npu_device.on_npu(torch.rand(3, 2)).requires_grad_()
x = npu_device.on_npu(torch.rand(4, 3))
hook = dispatch.DispatchHook(Request(activities=frozenset({"CPU", "NPU"}), recorded=Recorded(record_shapes=True)))
hook.start()
torch.ones(2) * 3
(x @ weight).sum().backward()
trace = hook.stop()
found = {
    (trace.names[name], trace.devices[device], PHASES[phase])
    for name, device, phase in zip(trace.name, trace.device, trace.phase)
}
assert ("aten::mm", "NPU", "forward") in found, found
assert ("aten::mm", "NPU", "backward") in found, found
assert ("aten::mul", "CPU", "forward") in found, found
assert {device for name, device, _ in found if name == "aten::mm"} == {"NPU"}, found
print("recorded on NPU")
"""


def test_ops_on_an_npu_device_are_npu_ops_in_forward_and_backward(request: pytest.FixtureRequest) -> None:
    tests = str(request.config.rootpath / "tests")
    ran = subprocess.run([sys.executable, "-c", NPU], cwd=tests, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "recorded on NPU", ran.stderr[-2000:]


@pytest.mark.skipif(not hasattr(torch, "npu") or not torch.npu.is_available(), reason="no Ascend NPU on this machine")
def test_ops_on_a_real_npu_are_npu_ops_with_its_own_memory() -> None:
    x = torch.rand(64, 64, device="npu")
    hook = _hook(activities=frozenset({"CPU", "NPU"}), profile_memory=True)
    hook.prepare()
    hook.start()
    y = x @ x
    trace = hook.stop()

    row = _row(trace, "aten::mm")
    assert trace.devices[trace.device[row]] == "NPU"
    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert trace.memory_after[row] - trace.memory_before[row] >= y.numel() * y.element_size()
