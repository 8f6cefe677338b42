"""Promises of the hook on MindTorch v2 and on Candle; each has a test file that brings its `peer` and takes these."""

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from recording import EVERY_FLAG

from mtprof_nb.analysis.costs import event_costs
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.registry import HOOK_KINDS
from mtprof_nb.model.trace import KINDS, PHASES, Recorded, Trace
from mtprof_nb.tables.averages import key_averages


@dataclass(frozen=True)
class Peer:
    """A runtime with torch's surface, and where it keeps what a hook could change."""

    name: str
    engine: str
    node: str
    cpu_storage: tuple[str, str]

    def part(self, path: str) -> ModuleType:
        return importlib.import_module(f"{self.name}.{path}" if path else self.name)

    def hook(self, **flags: bool) -> Any:
        return HOOK_KINDS[self.name].make(Request(recorded=Recorded(**flags)))

    def record(self, program: Callable[[], Any], **flags: bool) -> Trace:
        hook = self.hook(**flags)
        hook.prepare()
        hook.start()
        try:
            program()
        finally:
            trace: Trace = hook.stop()
        return trace

    def recorded_by_itself(self, program: Callable[[], Any]) -> list[str]:
        """Names of ops and scopes, by the runtime's own profiler."""
        own = self.part("profiler").profile()
        own.start()
        program()
        own.stop()
        return [event["name"] for event in own.events()]

    def state(self) -> list[Any]:
        """All that a hook could have changed."""
        profiler, engine = self.part("profiler.profiler"), self.part(self.engine)
        owners = [profiler, profiler._RecordFunction, self.part("nn").Module, self.part("optim").Optimizer]
        owners += [self.part("optim").SGD, self.part("optim").Adam, self.part("_dispatch.dispatcher")._PendingOp]
        owners += [engine, getattr(self.part(self.cpu_storage[0]), self.cpu_storage[1])]
        owners += [self.part(self.node).Node, *self.part(self.node).Node.__subclasses__()]
        points = [profiler.is_profiler_enabled, profiler.dispatch_op_enter, profiler.dispatch_op_exit]
        codes = [(point.__code__, point.__defaults__) for point in points]
        return [codes, *(dict(vars(owner)) for owner in owners)]


def training(peer: Peer, optimizer: str = "SGD") -> Callable[[], Any]:
    """One step of a small model: call it as often as wanted. Its result is the loss."""
    torch, nn, optim = peer.part(""), peer.part("nn"), peer.part("optim")

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(8, 16)
            self.out = nn.Linear(16, 1)

        def forward(self, x: Any) -> Any:
            return self.out(torch.relu(self.hidden(x)))

    torch.manual_seed(0)
    net, x = Net(), torch.randn(5, 8)
    update = getattr(optim, optimizer)(net.parameters(), lr=0.01)

    def step() -> float:
        update.zero_grad()
        loss = net(x).mean()
        loss.backward()
        update.step()
        return float(loss.item())

    return step


@pytest.fixture(autouse=True)
def _nothing_stays_patched(peer: Peer) -> Iterator[None]:
    training(peer)()
    before = peer.state()
    yield
    after = peer.state()
    assert len(after) == len(before)
    assert [position for position, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == []


def leaf(peer: Peer, *shape: int) -> Any:
    """A tensor that wants a gradient."""
    tensor = peer.part("").ones(*shape)
    tensor.requires_grad = True
    return tensor


def names(trace: Trace, kind: str = "op") -> list[str]:
    return [trace.names[name] for name in trace.name[trace.kind == KINDS.index(kind)]]


def here(trace: Trace, row: int, file: str = __file__) -> list[tuple[int, str]]:
    assert trace.stacks is not None
    assert trace.stack is not None
    return [(frame.line, frame.function) for frame in trace.stacks.stack(int(trace.stack[row])) if frame.file == file]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_training_step_has_the_ops_that_the_runtimes_own_profiler_sees(peer: Peer, optimizer: str) -> None:
    step = training(peer, optimizer)
    step()
    own = peer.recorded_by_itself(step)
    trace = peer.record(step)

    assert names(trace) == [f"aten::{name}" for name in own]
    assert names(trace, "scope") == [f"Optimizer.step#{optimizer}.step"]
    assert {PHASES[phase] for phase in trace.phase} == {"forward", "backward", "optimizer"}
    assert {trace.devices[device] for device in trace.device} == {"CPU"}
    phases = [PHASES[phase] for phase in trace.phase]
    assert phases == sorted(phases, key=["forward", "backward", "optimizer"].index)


def test_the_runtimes_own_profiler_sees_the_same_before_during_and_after(peer: Peer) -> None:
    step = training(peer)
    step()
    before = peer.recorded_by_itself(step)
    during: list[str] = []
    trace = peer.record(lambda: during.extend(peer.recorded_by_itself(step)), **EVERY_FLAG)

    assert before == during == peer.recorded_by_itself(step)
    assert names(trace) == [f"aten::{name}" for name in during]


def test_results_are_the_same_with_and_without_a_recording(peer: Peer) -> None:
    alone, recorded = training(peer, "Adam"), training(peer, "Adam")
    expected = [alone() for _ in range(3)]
    found: list[float] = []
    peer.record(lambda: found.extend(recorded() for _ in range(3)), **EVERY_FLAG)

    assert found == expected


def test_backward_ops_are_linked_to_the_op_that_made_their_node(peer: Peer) -> None:
    torch = peer.part("")
    weight = leaf(peer, 3)
    trace = peer.record(lambda: torch.exp(weight).sum().backward())

    links = {trace.names[trace.name[row]] for row in trace.forward[trace.forward >= 0]}
    assert links == {"aten::exp", "aten::sum"}
    rows = [row for row in range(len(trace)) if PHASES[trace.phase[row]] == "backward"]
    assert [trace.names[trace.name[trace.forward[row]]] for row in rows][-1] == "aten::exp"
    assert all(trace.forward[row] < row for row in rows)


def test_stacks_have_the_exact_line_of_an_operator_and_the_forward_line_in_the_backward_pass(peer: Peer) -> None:
    weight = leaf(peer, 3)
    line = 0

    def program() -> None:
        nonlocal line
        line = sys._getframe().f_lineno + 1
        product = weight * weight
        product.sum().backward()

    trace = peer.record(program, with_stack=True)
    first = names(trace).index("aten::mul")
    assert here(trace, first)[0] == (line, "program")
    lent = [row for row in range(len(trace)) if trace.forward[row] == first]
    assert lent
    assert trace.stack_is_forward is not None
    assert trace.stack_is_forward[lent].all()
    assert {here(trace, row)[0] for row in lent} == {(line, "program")}


def test_no_frame_of_the_profiler_or_of_the_dispatcher_is_on_a_stack(peer: Peer) -> None:
    trace = peer.record(training(peer), with_stack=True)

    assert trace.stacks is not None
    files = {frame.file for frame in trace.stacks.frames}
    assert not [file for file in files if "mtprof_nb/capture" in file and "/tests/" not in file]
    assert not [file for file in files if f"{peer.name}/_dispatch/" in file or f"{peer.name}/profiler/" in file]


def test_a_backward_written_in_python_keeps_its_own_stack(peer: Peer) -> None:
    torch = peer.part("")
    function = torch.autograd.Function

    class Doubled(function):  # type: ignore[misc,valid-type]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = leaf(peer, 3)
    trace = peer.record(lambda: Doubled.apply(x).sum().backward(), with_stack=True)

    own = [row for row in range(len(trace)) if here(trace, row) and here(trace, row)[0][1] == "backward"]
    assert own
    assert trace.stack_is_forward is not None
    assert not trace.stack_is_forward[own].any()


def test_shapes_are_of_tensors_and_of_lists(peer: Peer) -> None:
    torch = peer.part("")
    a, b = torch.ones(2, 3), torch.ones(4, 3)

    def program() -> None:
        torch.matmul(a, torch.ones(3, 5))
        torch.cat([a, b])

    trace = peer.record(program, record_shapes=True)
    assert trace.shape is not None
    shapes = {trace.names[name]: trace.shapes[shape] for name, shape in zip(trace.name, trace.shape, strict=True)}
    assert shapes["aten::matmul"][:2] == ((2, 3), (3, 5))
    assert ((2, 3), (4, 3)) in shapes["aten::cat"]


def test_cpu_memory_is_exact_and_an_ops_own(peer: Peer) -> None:
    torch = peer.part("")
    a = torch.ones(1000)
    kept: list[Any] = []
    trace = peer.record(lambda: kept.append(a * a), profile_memory=True)

    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert (trace.memory_before[0], trace.memory_after[0]) == (0, 4000)
    assert trace.allocations is not None
    assert trace.allocations.nbytes.tolist() == [4000]


def test_memory_released_between_two_ops_is_no_ops(peer: Peer) -> None:
    torch = peer.part("")

    def program() -> None:
        large = torch.zeros(500_000)
        del large
        small = torch.zeros(10)
        del small
        torch.zeros(3)

    trace = peer.record(program, profile_memory=True)
    changes = event_costs(trace).memory
    assert changes is not None
    outermost = [row for row in np.flatnonzero(nesting(trace).parent < 0).tolist() if "zeros" in names(trace)[row]]
    assert [changes.cpu[row] for row in outermost] == [2_000_000, 40, 12]
    assert trace.allocations is not None
    assert trace.allocations.total.tolist() == [2_000_000, 0, 40, 0, 12]
    released = trace.allocations.nbytes < 0
    assert trace.allocations.event[released].tolist() == [-1, -1]
    assert [row.cpu_memory_usage for row in key_averages(trace) if row.key == "[memory]"] == [-2_000_040]
    assert sum(row.self_cpu_memory_usage for row in key_averages(trace)) == 12


def test_operations_of_a_product_are_counted_once(peer: Peer) -> None:
    torch = peer.part("")
    a, b = torch.ones(2, 3), leaf(peer, 3, 4)
    trace = peer.record(lambda: torch.matmul(a, b), with_flops=True)

    assert trace.flops is not None
    assert trace.flops[trace.flops >= 0].tolist() == [2 * 2 * 3 * 4]


def test_modules_are_paths_in_forward_and_backward(peer: Peer) -> None:
    trace = peer.record(training(peer), with_modules=True)

    assert trace.module is not None
    for phase in ("forward", "backward"):
        here = trace.module[trace.phase == PHASES.index(phase)]
        assert {trace.modules[module] for module in here[here >= 0]} == {"Net", "Net.hidden", "Net.out"}


def test_the_runtimes_record_function_is_a_scope(peer: Peer) -> None:
    torch, record_function = peer.part(""), peer.part("profiler").record_function

    def program() -> None:
        with record_function("outer"), record_function("inner"):
            torch.ones(2) + torch.ones(2)

    trace = peer.record(program, with_stack=True)
    assert names(trace, "scope") == ["outer", "inner"]
    assert here(trace, 0)[0][1] == "program"


def test_ops_that_were_put_off_are_recorded(peer: Peer) -> None:
    torch, dispatch = peer.part(""), peer.part("_dispatch")
    a = torch.ones(2)

    def program() -> None:
        with dispatch.pipeline_context():
            a + a

    assert "aten::add" in names(peer.record(program))


def test_an_exception_of_an_op_is_the_same_with_and_without_a_recording(peer: Peer) -> None:
    torch = peer.part("")

    def failure() -> BaseException:
        try:
            torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
        except Exception as error:
            return error
        raise AssertionError("did not fail")

    found: list[BaseException] = []
    trace = peer.record(lambda: found.append(failure()), **EVERY_FLAG)
    expected = failure()

    assert (type(found[0]), str(found[0])) == (type(expected), str(expected))
    assert type(found[0].__context__) is type(expected.__context__)
    assert "aten::matmul" in names(trace)


def test_threads_have_lanes_of_their_own(peer: Peer) -> None:
    torch = peer.part("")
    a = torch.ones(2)

    def program() -> None:
        a + a
        worker = threading.Thread(target=lambda: a * a, name="worker")
        worker.start()
        worker.join()

    trace = peer.record(program)
    lanes = [(trace.names[name], trace.tracks[lane].name) for name, lane in zip(trace.name, trace.track, strict=True)]
    assert lanes == [("aten::add", "MainThread"), ("aten::mul", "worker")]


def test_ops_on_a_real_npu_are_npu_ops(peer: Peer) -> None:
    torch = peer.part("")
    if not torch.npu.is_available():
        pytest.skip("no Ascend NPU on this machine")
    request = Request(activities=frozenset({"CPU", "NPU"}), recorded=Recorded(profile_memory=True))
    hook = HOOK_KINDS[peer.name].make(request)
    a = torch.ones(64, 64, device="npu", requires_grad=True)
    hook.start()
    torch.matmul(a, a).sum().backward()
    trace = hook.stop()

    assert {trace.devices[device] for device in trace.device[trace.kind == KINDS.index("op")]} == {"NPU"}
    assert trace.memory_before is not None
    assert trace.memory_before[trace.kind == KINDS.index("op")].min() >= 0
