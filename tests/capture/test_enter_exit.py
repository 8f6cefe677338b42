"""The hook of MindTorch v2 and Candle, on a stand-in with the same points: what it records of every op."""

import gc
import inspect
import threading
from typing import Any

import numpy as np
import pytest
from enter_exit_recording import names_of, new_hook
from standin import minitensor as mt
from standin.minitensor._autograd import node
from standin.minitensor._storage import _CPUUntypedStorage
from standin.minitensor._tensor import Device

from mtprof_nb.analysis.costs import event_costs
from mtprof_nb.model.trace import PHASES, Trace

pytestmark = pytest.mark.usefixtures("nothing_stays_patched")


def _rows(trace: Trace, name: str) -> list[int]:
    return [row for row, position in enumerate(trace.name) if trace.names[position] == name]


def _stack(trace: Trace, row: int) -> list[str]:
    assert trace.stacks is not None
    assert trace.stack is not None
    return [f"{frame.line}:{frame.function}" for frame in trace.stacks.stack(int(trace.stack[row]))]


def test_ops_are_recorded_under_their_aten_names_with_the_runtimes_device() -> None:
    hook = new_hook()
    hook.start()
    mt.ones(2) + mt.ones(2)
    mt.ones(2, device="npu") * mt.ones(2, device="npu")
    trace = hook.stop()

    assert names_of(trace) == ["aten::add", "aten::mul"]
    assert [trace.devices[device] for device in trace.device] == ["CPU", "NPU"]
    assert trace.correlation_id.tolist() == [1, 2]
    assert (trace.duration_ns >= 0).all()
    assert trace.began_ns <= trace.start_ns[0] <= trace.ended_ns


def test_a_device_keeps_its_own_name_and_index_and_cuda_is_not_called_an_npu() -> None:
    hook = new_hook(activities=frozenset({"CPU", "CUDA", "NPU"}))
    hook.start()
    mt.ones(2, device=Device("cuda", 1)).sum()
    mt.dispatch("sum", "npu:3", mt.ones(2))
    trace = hook.stop()

    places = zip(trace.device, trace.device_index, strict=True)
    assert [(trace.devices[device], index) for device, index in places] == [("CUDA", 1), ("NPU", 3)]


def test_forward_backward_and_optimizer_ops_have_their_phase_and_their_forward_op() -> None:
    layer = mt.nn.Linear(3, 4)
    optimizer = mt.optim.SGD([layer.weight])
    hook = new_hook()
    hook.start()
    loss = (layer(mt.ones(2, 3)) * mt.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    trace = hook.stop()

    phases = [(trace.names[name], PHASES[phase]) for name, phase in zip(trace.name, trace.phase, strict=True)]
    assert phases == [
        *[("aten::matmul", "forward")] * 2,
        *[("aten::mul", "forward")] * 2,
        *[("aten::sum", "forward")] * 2,
        *[("aten::scale", "backward")] * 5,
        ("Optimizer.step#SGD.step", "optimizer"),
        *[("aten::scale", "optimizer")] * 2,
    ]
    makers = [trace.names[trace.name[row]] for row in trace.forward if row >= 0]
    assert makers == ["aten::sum", "aten::mul", "aten::mul", "aten::matmul", "aten::matmul"]
    assert trace.sequence_nr.tolist() == [0, -1, 1, -1, 2, -1, 2, 1, 1, 0, 0, -1, 3, -1]
    # The outer event of each pair made the node: the inner one is the kernel that it called.
    assert trace.forward[trace.forward >= 0].tolist() == [4, 2, 2, 0, 0]


def test_shapes_are_those_of_tensors_of_lists_and_of_keywords() -> None:
    hook = new_hook(record_shapes=True)
    hook.start()
    mt.dispatch("cat", "cpu", [mt.ones(2, 3), mt.ones(4, 3)])
    mt.dispatch("scale", "cpu", mt.ones(5), 2.0, offset=mt.ones(1))
    trace = hook.stop()

    assert trace.shape is not None
    assert [trace.shapes[shape] for shape in trace.shape] == [(((2, 3), (4, 3)),), ((5,), (), (1,))]
    assert [trace.dtypes[shape] for shape in trace.shape] == [("float",), ("float", "", "float")]


def test_a_tensor_of_the_users_own_that_cannot_tell_its_shape_does_not_fail_the_op() -> None:
    class Shapeless(mt.Tensor):
        @property
        def shape(self) -> Any:
            raise RuntimeError("no shape")

    hook = new_hook(record_shapes=True)
    hook.start()
    mt.dispatch("sum", "cpu", Shapeless(np.ones(2)))
    trace = hook.stop()

    assert trace.shapes == (((),),)


def test_the_stack_has_the_line_of_the_call_and_no_frame_of_the_profiler() -> None:
    hook = new_hook(with_stack=True)
    hook.start()
    a = mt.ones(2)
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    a + a
    with hook.scope("mine"):
        pass
    trace = hook.stop()

    here = f"{line}:test_the_stack_has_the_line_of_the_call_and_no_frame_of_the_profiler"
    assert here in _stack(trace, 0)
    assert _stack(trace, 1)[0] == f"{line + 1}:{here.partition(':')[2]}"
    files = {frame.file for row in (0, 1) for frame in trace.stacks.stack(int(trace.stack[row]))}  # type: ignore
    assert not any("mtprof_nb/capture" in file and "tests" not in file for file in files)


def test_an_op_of_the_backward_pass_carries_the_stack_of_its_forward_op_and_says_so() -> None:
    weight = mt.ones(2, requires_grad=True)
    hook = new_hook(with_stack=True)
    hook.start()
    loss = weight.sum()
    loss.backward()
    trace = hook.stop()

    backward = _rows(trace, "aten::scale")
    assert trace.stack_is_forward is not None
    assert trace.stack_is_forward[backward].all()
    assert [_stack(trace, row) for row in backward] == [_stack(trace, 0)]


def test_a_backward_written_by_the_user_keeps_its_own_stack() -> None:
    weight, other = mt.ones(2, requires_grad=True), mt.ones(2)

    def my_backward() -> list[Any]:
        return [other * other]

    hook = new_hook(with_stack=True)
    hook.start()
    loss = weight.sum()
    loss.grad_fn = node.Node(my_backward, (weight,))
    loss.backward()
    trace = hook.stop()

    (row,) = _rows(trace, "aten::mul")
    assert trace.forward[row] == 0
    assert any(frame.endswith(":my_backward") for frame in _stack(trace, row))
    assert trace.stack_is_forward is not None
    assert not trace.stack_is_forward[row]


def test_memory_is_that_of_the_storages_and_each_change_is_the_innermost_ops() -> None:
    weight = mt.ones(100, requires_grad=True)
    hook = new_hook(profile_memory=True)
    hook.start()
    doubled = weight + weight
    tripled = weight * doubled
    del doubled, tripled
    gc.collect()
    weight.sum()
    trace = hook.stop()

    assert trace.memory_before is not None
    assert trace.memory_after is not None
    # Each op twice: the outer one makes the autograd node, the inner one the numbers.
    assert trace.memory_before.tolist() == [0, 0, 400, 400, 0, 0]
    assert trace.memory_after.tolist() == [400, 400, 800, 800, 4, 4]
    assert trace.allocations is not None
    assert trace.allocations.nbytes.tolist() == [400, 400, -800, 4]
    assert trace.allocations.event.tolist() == [1, 3, -1, 5]
    assert trace.allocations.total.tolist() == [400, 800, 0, 4]
    # What went between two ops is in neither.
    changes = event_costs(trace).memory
    assert changes is not None
    assert changes.cpu.tolist() == [400, 400, 400, 400, 4, 4]


def test_a_storage_of_what_cannot_tell_its_size_is_made_and_not_counted() -> None:
    class Sizeless:
        @property
        def nbytes(self) -> int:
            raise RuntimeError("no size")

    hook = new_hook(profile_memory=True)
    hook.start()
    made = [_CPUUntypedStorage(Sizeless()), _CPUUntypedStorage([1, 2])]
    mt.ones(100).sum()
    trace = hook.stop()

    assert made[1].array == [1, 2]
    assert trace.memory_before is not None
    assert trace.memory_before.tolist() == [400]


def test_memory_of_a_device_is_its_own_counter_less_what_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([100, 160])
    monkeypatch.setattr(mt.npu, "memory_allocated", lambda: next(readings))
    hook = new_hook(profile_memory=True)
    hook.start()
    mt.ones(2, device="npu").sum()
    trace = hook.stop()

    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert (trace.memory_before.tolist(), trace.memory_after.tolist()) == ([0], [60])


def test_a_device_that_cannot_tell_its_memory_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> int:
        raise RuntimeError("device lost")

    monkeypatch.setattr(mt.npu, "memory_allocated", failing)
    hook = new_hook(profile_memory=True)
    hook.start()
    mt.ones(2, device="npu").sum()
    trace = hook.stop()

    assert trace.memory_before is not None
    assert trace.memory_before.tolist() == [-1]


def test_operations_are_counted_once_though_an_op_runs_inside_another_of_its_name() -> None:
    hook = new_hook(with_flops=True)
    hook.start()
    mt.ones(2, 3) @ mt.ones(3, 4, requires_grad=True)
    mt.ones(2) + mt.ones(2)
    trace = hook.stop()

    assert trace.flops is not None
    assert trace.flops.tolist() == [2 * 2 * 3 * 4, -1, 2]


def test_modules_are_paths_from_the_outermost_module_that_was_called() -> None:
    class Net(mt.nn.Module):
        def __init__(self) -> None:
            self.first = mt.nn.Linear(3, 3)
            self.second = mt.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x) + x)

    net, x = Net(), mt.ones(2, 3)
    hook = new_hook(with_modules=True)
    hook.start()
    out = net(x)
    x + x
    out.backward()
    trace = hook.stop()

    assert trace.module is not None
    paths = [trace.modules[module] if module >= 0 else None for module in trace.module]
    forward = ["Net.first"] * 2 + ["Net"] * 2 + ["Net.second"] * 2 + [None]
    # The backward pass belongs to the modules whose forward it undoes.
    assert paths == [*forward, "Net.second", "Net.second", "Net", "Net", "Net.first", "Net.first"]


def test_a_module_that_raises_is_left() -> None:
    class Broken(mt.nn.Module):
        def forward(self, x: Any) -> Any:
            return mt.dispatch("fail", "cpu", x)

    hook = new_hook(with_modules=True)
    hook.start()
    with pytest.raises(ValueError, match="cannot do this"):
        Broken()(mt.ones(2))
    mt.ones(2).sum()
    trace = hook.stop()

    assert trace.module is not None
    assert trace.module.tolist() == [0, -1]
    assert trace.modules == ("Broken",)


def test_ops_that_were_put_off_are_recorded_when_they_run_with_the_stack_of_their_call() -> None:
    hook = new_hook(with_stack=True)
    hook.start()
    with mt.pipeline():
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        mt.ones(2) + mt.ones(2)
    trace = hook.stop()

    assert names_of(trace) == ["aten::add"]
    assert f"{line}:test_ops_that_were_put_off_are_recorded_when_they_run_with_the_stack_of_their_call" in _stack(
        trace, 0
    )


def test_the_runtimes_record_function_is_a_scope_also_where_it_is_closed_by_an_exception() -> None:
    hook = new_hook()
    hook.start()
    with mt.profiler.record_function("outer"), pytest.raises(ValueError, match="cannot"):  # noqa: SIM117
        with mt.profiler.record_function("inner"):
            mt.dispatch("fail", "cpu", mt.ones(2))
    trace = hook.stop()

    assert names_of(trace, "scope") == ["outer", "inner"]
    assert trace.is_user_annotation.tolist() == [True, True, False]
    assert trace.end_ns[0] >= trace.end_ns[1] >= trace.end_ns[2]


def test_every_threads_ops_are_on_a_lane_of_their_own() -> None:
    hook = new_hook()
    hook.start()
    mt.ones(2).sum()
    worker = threading.Thread(target=lambda: mt.ones(2) + mt.ones(2), name="worker")
    worker.start()
    worker.join()
    trace = hook.stop()

    assert [trace.tracks[thread].name for thread in trace.track] == ["MainThread", "worker"]
    assert trace.tracks[1].native_id != threading.get_native_id()


def test_a_step_that_calls_the_step_of_its_base_is_one_scope() -> None:
    class Base(mt.optim.Optimizer):
        def step(self) -> None:
            self.params[0].sum()

    class Mine(Base):
        def step(self) -> None:
            super().step()

    optimizer = Mine([mt.ones(2)])
    hook = new_hook()
    hook.start()
    optimizer.step()
    optimizer.step()
    trace = hook.stop()

    assert names_of(trace, "scope") == ["Optimizer.step#Mine.step"] * 2


def test_an_optimizer_class_written_while_recording_has_its_phase_too() -> None:
    hook = new_hook()
    hook.start()

    class Mine(mt.optim.Optimizer):
        def step(self) -> None:
            self.params[0].sum()

    Mine([mt.ones(2)]).step()
    trace = hook.stop()

    assert names_of(trace, "scope") == ["Optimizer.step#Mine.step"]
    assert [PHASES[phase] for phase in trace.phase] == ["optimizer", "optimizer"]
    assert Mine.step.__qualname__.endswith("Mine.step")
