"""Hook `dispatch` on tensors of every kind, compiled functions and NPUs."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from dispatch_recording import names_of, new_hook, record, row_of
from recording import EVERY_FLAG


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
    record(lambda: found.append(program()), **EVERY_FLAG)
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
    trace = record(program, **{**EVERY_FLAG, "profile_memory": False})

    assert len(trace) > 0
    assert trace.shape is not None


def test_fake_tensors_are_recorded_where_they_claim_to_be() -> None:
    from torch._subclasses import FakeTensorMode

    def program() -> None:
        with FakeTensorMode():
            torch.ones(3, 3) @ torch.ones(3, 3)

    assert names_of(record(program, record_shapes=True)) == ["aten::ones", "aten::ones", "aten::mm"]


COMPILED = """
import sys
import torch
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters
from mtprof_nb.capture.dispatch.dispatch_hook import DispatchHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import Recorded

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
        "from mtprof_nb.capture.dispatch.dispatch_hook import DispatchHook\n"
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

import mtprof_nb.capture.dispatch.dispatch_hook as dispatch
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import PHASES, Recorded

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
assert ("aten::mul", "CPU", "other") in found, found
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
    hook = new_hook(activities=frozenset({"CPU", "NPU"}), profile_memory=True)
    hook.prepare()
    hook.start()
    y = x @ x
    trace = hook.stop()

    row = row_of(trace, "aten::mm")
    assert trace.devices[trace.device[row]] == "NPU"
    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert trace.memory_after[row] - trace.memory_before[row] >= y.numel() * y.element_size()
