"""Hook `dispatch` on PyTorch itself: what it records of every op."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from dispatch_recording import names_of, new_hook, record, row_of
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from mtprof_nb.errors import MtprofWarning
from mtprof_nb.model.trace import PHASES, Trace


def test_aten_ops_are_recorded_with_name_overload_and_device() -> None:
    trace = record(lambda: torch.ones(2) + torch.ones(2))

    assert names_of(trace) == ["aten::ones", "aten::ones", "aten::add"]
    assert trace.overload is not None
    assert [trace.overloads[at] if at >= 0 else "" for at in trace.overload] == ["", "", "Tensor"]
    assert {trace.devices[device] for device in trace.device} == {"CPU"}
    assert trace.correlation_id.tolist() == [1, 2, 3]
    assert trace.tracks[0].name == "MainThread"
    assert trace.began_ns <= trace.start_ns[0] <= trace.end_ns[-1] <= trace.ended_ns


def test_forward_backward_and_optimizer_are_recorded_with_their_phases() -> None:
    model, x = nn.Linear(3, 2), torch.rand(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    trace = record(step)
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

    trace = record(program)
    phases = [PHASES[phase] for phase, name in zip(trace.phase, names_of(trace), strict=True) if name.endswith("_like")]
    assert phases == ["other", "backward", "other"]


def test_an_op_of_the_backward_pass_is_linked_to_the_op_that_made_its_node() -> None:
    weight, x = torch.rand(3, 2, requires_grad=True), torch.rand(4, 3)
    trace = record(lambda: (x @ weight).relu().sum().backward())

    def maker(name: str) -> str:
        row = row_of(trace, name, "backward")
        return trace.names[trace.name[trace.forward[row]]]

    assert maker("aten::expand") == "aten::sum"
    assert maker("aten::threshold_backward") == "aten::relu"
    assert maker("aten::mm") == "aten::mm"
    assert trace.sequence_nr[row_of(trace, "aten::mm")] == trace.sequence_nr[row_of(trace, "aten::mm", "backward")]
    assert trace.forward[row_of(trace, "aten::relu")] == -1


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

    trace = record(step)
    assert [trace.names[trace.name[row]] for row in trace.forward if row >= 0] == running
    assert len(running) > 10


def test_writing_into_a_view_is_linked_to_the_op_that_wrote() -> None:
    def program() -> None:
        a = torch.ones(4, requires_grad=True)
        b = a * 1
        b[1:] = 2
        b.sum().backward()

    trace = record(program)
    row = row_of(trace, "aten::as_strided", "backward")
    assert trace.names[trace.name[trace.forward[row]]] == "aten::fill_"


def test_the_backward_of_an_older_graph_is_linked_to_no_op_of_another_thread() -> None:
    w = torch.rand(4, requires_grad=True)

    def recorded() -> Trace:
        loss = w.sin().cos().sum()

        def program() -> None:
            with ThreadPoolExecutor(1) as other:
                other.submit(lambda: w.exp().tanh().sum()).result()
            loss.backward()

        return record(program)

    # Numbers begin at 0 on a new thread: both graphs have those from 0 to 2.
    with ThreadPoolExecutor(1) as new:
        trace = new.submit(recorded).result()
    in_backward = trace.phase == PHASES.index("backward")
    assert set(trace.sequence_nr[in_backward].tolist()) == {-1, 0, 1, 2}
    assert set(trace.forward[in_backward].tolist()) == {-1}


def test_torchs_record_function_is_a_scope_and_no_op_and_an_exception_closes_it() -> None:
    @torch.profiler.record_function("outer")
    def failing() -> None:
        with torch.profiler.record_function("inner"):
            torch.ones(1)
        raise KeyError("mine")

    def program() -> None:
        with pytest.raises(KeyError):
            failing()

    trace = record(program)
    assert names_of(trace) == ["aten::ones"]
    assert names_of(trace, "scope") == ["outer", "inner"]
    outer, inner, op = trace.end_ns.tolist()
    assert op <= inner <= outer <= trace.ended_ns


def test_a_scope_of_the_hooks_own_nests_with_torchs() -> None:
    hook = new_hook()
    hook.start()
    with hook.scope("mine"), torch.profiler.record_function("torch's"), hook.scope("mine again"):
        pass
    trace = hook.stop()

    assert names_of(trace, "scope") == ["mine", "torch's", "mine again"]
    assert not trace.is_async.any()


def test_shapes_are_of_tensors_of_lists_and_of_keywords() -> None:
    a, b = torch.rand(2, 3), torch.rand(2, 3)

    def program() -> None:
        torch.cat([a, b], 1)
        torch.add(input=a, other=b, alpha=2)
        torch.ones_like(a)
        torch.add(a, b, out=torch.empty(2, 3))

    trace = record(program, record_shapes=True)
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

    trace = record(program, with_flops=True)
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
    trace = record(lambda: model(x).sum().backward(), with_modules=True)

    def module(name: str, phase: str = "forward") -> str | None:
        assert trace.module is not None
        at = trace.module[row_of(trace, name, phase)]
        return trace.modules[at] if at >= 0 else None

    assert module("aten::addmm") == "Net.body.0"
    assert module("aten::relu") == "Net.body.1"
    assert module("aten::exp") == "Net"
    assert module("aten::sum") is None
    assert module("aten::threshold_backward", "backward") == "Net.body.1"
    assert module("aten::mm", "backward") == "Net.body.0"


def test_modules_that_a_checkpoint_calls_again_keep_their_paths() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    model = Net()
    trace = record(lambda: model(torch.ones(2, 3)).sum().backward(), with_modules=True)

    assert trace.module is not None
    ran = [
        (PHASES[trace.phase[row]], trace.modules[trace.module[row]])
        for row in range(len(trace))
        if trace.names[trace.name[row]] == "aten::addmm"
    ]
    assert ran == [
        ("forward", "Net.blocks.0.0"),
        ("forward", "Net.blocks.1.0"),
        ("backward", "Net.blocks.1.0"),
        ("backward", "Net.blocks.0.0"),
    ]


def test_cpu_memory_is_the_allocators_own_and_belongs_to_the_op() -> None:
    def program() -> None:
        kept = torch.empty(1000, dtype=torch.uint8)
        gone = torch.empty(500, dtype=torch.uint8)
        del gone
        kept.clone()

    trace = record(program, profile_memory=True)
    assert trace.allocations is not None
    assert trace.allocations.nbytes.tolist() == [1000, 500, -500, 1000, -1000, -1000]
    assert trace.allocations.event.tolist() == [0, 1, -1, 2, -1, -1]
    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert (trace.memory_after - trace.memory_before).tolist() == [1000, 500, 1000]


def test_without_kineto_cpu_memory_is_missing_and_one_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.profiler, "kineto_available", lambda: False)
    with pytest.warns(MtprofWarning, match="no Kineto, so CPU memory is not recorded") as warned:
        trace = record(lambda: torch.ones(2), profile_memory=True)

    assert len(warned) == 1
    assert trace.memory_before is not None
    assert trace.memory_before.tolist() == [-1]


def test_recording_stops_at_the_limit_and_counts_what_it_dropped() -> None:
    hook = new_hook(max_events=3)
    hook.start()
    for _ in range(5):
        torch.ones(1)
    trace = hook.stop()

    assert (len(trace), trace.dropped) == (3, 2)
    ((began_ns, _, reason),) = trace.unrecorded
    assert began_ns >= trace.end_ns.max()
    assert reason == "max_events=3 was reached; raise max_events, or use a schedule"


@pytest.mark.parametrize("tensors", [(), (torch.ones(1),)], ids=["without", "with a tensor"])
def test_a_recording_that_lacks_an_op_is_complete_until_that_op_began(tensors: tuple[torch.Tensor, ...]) -> None:
    hook, inside = new_hook(max_events=1), []
    hook.start()
    torch.ones(1)
    hook._recorder.run(lambda *_: inside.append(hook._request.clock.now_ns()), tensors, {})
    trace = hook.stop()

    assert len(trace) == 1
    assert trace.end_ns[0] <= trace.unrecorded[0].began_ns <= inside[0], "not when it ended"


def test_an_op_that_runs_when_another_one_is_left_out_is_recorded() -> None:
    hook, x = new_hook(max_events=1), torch.ones(1)
    hook.start()
    hook._recorder.run(lambda inner: inner.neg(), (x,), {})
    trace = hook.stop()

    assert (len(trace), trace.dropped) == (1, 1)
    assert trace.start_ns[0] <= trace.unrecorded[0].began_ns <= trace.end_ns[0]


def test_ops_of_an_activity_that_is_off_are_not_recorded() -> None:
    hook = new_hook()
    hook.start()
    torch.ones(1)
    hook.toggle(False, frozenset({"CPU"}))
    torch.zeros(1)
    hook.toggle(True, frozenset({"CPU"}))
    torch.rand(1)
    trace = hook.stop()

    assert names_of(trace) == ["aten::ones", "aten::rand"]


def test_with_every_flag_off_shapes_stacks_and_modules_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_args: Any) -> Any:
        raise AssertionError("read, though nobody asked for it")

    for name in (
        "tensor_facts.TensorFacts.shapes",
        "tensor_facts.TensorFacts.flops",
        "module_paths.ModulesOnStack.path",
    ):
        monkeypatch.setattr(f"mtprof_nb.capture.buffers.{name}", read)
    monkeypatch.setattr("mtprof_nb.capture.samples.python_stacks.Stacks.capture", read)
    trace = record(lambda: torch.ones(1))

    optional = (trace.shape, trace.stack, trace.memory_before, trace.flops, trace.module, trace.allocations)
    assert optional == (None,) * 6
