"""Programs that a profiler seldom meets: the same result as without it, a whole trace, and every output."""

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import EVERY_FLAG, HOOKS
from reliability_cases import names

import mtprof_nb as mtp
from mtprof_nb.model.trace import OP

torch = pytest.importorskip("torch")
DISPATCH = {"hook": "dispatch", **EVERY_FLAG}


class Liar(torch.Tensor):
    """A tensor that is wrong about itself."""

    @property
    def shape(self) -> Any:
        return "no shape at all"

    @property
    def device(self) -> Any:
        raise RuntimeError("nowhere")

    @property
    def dtype(self) -> Any:
        return 17


class Unprintable(torch.nn.Module):
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def forward(self, x: Any) -> Any:
        return torch.sin(x)


class UnprintableTensor(torch.Tensor):
    def __repr__(self, *, tensor_contents: Any = None) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


def deep(levels: int) -> Any:
    return deep(levels - 1) + 1 if levels else torch.sin(torch.zeros(2))


def an_op_that_raises() -> Any:
    with contextlib.suppress(RuntimeError):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        return "no error"
    return torch.sin(torch.zeros(2)).tolist()


def fake_tensors() -> Any:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return tuple(torch.sin(torch.ones(2, 3)).shape)


def a_custom_dispatch_mode() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Doubling(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 2 if "sin" in str(func) else result

    with Doubling():
        return torch.sin(torch.ones(2)).tolist()


def autocast() -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return str(torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype)


def inference() -> Any:
    with torch.inference_mode():
        made = torch.sin(torch.zeros(2))
    return made.is_inference(), made.tolist()


def without_gradients() -> Any:
    with torch.no_grad():
        return torch.sin(torch.ones(2, requires_grad=True)).requires_grad


def double_backward() -> Any:
    x = torch.full((2,), 2.0, requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return second.tolist()


def checkpointed() -> Any:
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(2, requires_grad=True)
    checkpoint(lambda y: torch.sin(y).exp(), x, use_reentrant=False).sum().backward()
    return x.grad.tolist()


def nested_tensors() -> Any:
    ragged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    return torch.sin(ragged).to_padded_tensor(0.0).shape


def quantised() -> Any:
    made = torch.quantize_per_tensor(torch.ones(4), 0.1, 10, torch.quint8)
    return torch.dequantize(made).tolist()


def sparse() -> Any:
    made = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    return torch.sparse.mm(made, torch.ones(2, 2)).tolist()


#: Each program, and an op that its trace must have (the hook `dispatch` sees what runs below composite ops).
PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "one long op": (lambda: torch.mm(torch.ones(600, 600), torch.ones(600, 600)).sum().item(), "aten::mm"),
    "recursion 900 deep": (lambda: deep(900).tolist(), "aten::sin"),
    "an op that raises": (an_op_that_raises, "aten::sin"),
    "a tensor that lies": (lambda: torch.sin(torch.zeros(2).as_subclass(Liar)).sum().item(), "aten::sin"),
    "a module without repr": (lambda: Unprintable()(torch.zeros(2)).tolist(), "aten::sin"),
    "a tensor without repr": (
        lambda: (torch.mm(torch.ones(2, 2).as_subclass(UnprintableTensor), torch.ones(2, 2)) + 1).tolist(),
        "aten::mm",
    ),
    "sparse": (sparse, "aten::_sparse_mm|aten::_sparse_addmm"),
    "quantised": (quantised, "aten::dequantize"),
    "nested": (nested_tensors, "aten::sin"),
    "fake": (fake_tensors, "aten::sin"),
    "meta": (lambda: tuple(torch.sin(torch.ones(3, device="meta")).shape), "aten::sin"),
    "vmap": (lambda: torch.func.vmap(torch.dot)(torch.ones(3, 4), torch.ones(3, 4)).tolist(), "aten::mul|aten::bmm"),
    "grad": (lambda: torch.func.grad(lambda x: torch.sin(x).sum())(torch.zeros(2)).tolist(), "aten::cos"),
    "jacrev": (lambda: torch.func.jacrev(torch.sin)(torch.zeros(2)).tolist(), "aten::cos"),
    "no_grad": (without_gradients, "aten::sin"),
    "inference_mode": (inference, "aten::sin"),
    "autocast": (autocast, "aten::mm"),
    "double backward": (double_backward, "aten::mul"),
    "checkpoint": (checkpointed, "aten::sin"),
    "a mode of the user's": (a_custom_dispatch_mode, "aten::sin"),
    "an empty tensor": (lambda: torch.sin(torch.empty(0, 3)).tolist(), "aten::sin"),
    "complex numbers": (lambda: torch.sin(torch.ones(2, dtype=torch.complex64)).tolist(), "aten::sin"),
    "a million small numbers": (lambda: torch.sin(torch.ones(1_000_000)).sum().item(), "aten::sin"),
}


def assert_every_output_works(prof: mtp.profile, folder: Path) -> None:
    trace = prof.trace
    assert (trace.duration_ns >= 0).all()
    prof.export_chrome_trace(folder / "trace.json")
    exported = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert sum(event.get("cat") == "cpu_op" for event in exported) == (trace.kind == OP).sum()
    prof.export_stacks(folder / "stacks.txt")
    assert prof.key_averages().table().startswith("-")
    json.dumps([dict(event) for event in prof.events()])


@HOOKS
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unusual_program_has_the_same_result_and_a_whole_trace(program: str, hook: str, tmp_path: Path) -> None:
    run, op = PROGRAMS[program]
    plain = run()
    with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        profiled = run()
    assert profiled == plain
    assert set(op.split("|")) & set(names(prof)), set(names(prof))
    assert_every_output_works(prof, tmp_path)


@HOOKS
def test_a_program_without_ops_has_an_empty_trace_and_every_output(
    hook: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        pass
    assert not [event for event in prof.events() if event.kind in ("op", "scope")]
    prof.export_chrome_trace(tmp_path / "trace.json")
    json.loads((tmp_path / "trace.json").read_text())
    prof.export_stacks(tmp_path / "stacks.txt")
    prof.key_averages().table()
    prof.show()
    assert capsys.readouterr().out


@pytest.mark.soak
@HOOKS
def test_distinct_names_by_the_ten_thousand_are_all_kept(
    hook: str, tmp_path: Path, rounds: Callable[[int, int], int]
) -> None:
    count = rounds(5_000, 100_000)
    with mtp.profile(hook=hook) as prof:
        for number in range(count):
            with mtp.record_function(f"scope {number}"):
                pass
    assert names(prof) == [f"scope {number}" for number in range(count)]
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert len(prof.key_averages()) == count
    assert "scope " in prof.key_averages().table(row_limit=5)


def test_the_depth_of_recursion_that_a_program_may_use_is_hardly_less() -> None:
    limit = sys.getrecursionlimit()

    def depth(levels: int) -> int:
        try:
            return depth(levels + 1)
        except RecursionError:
            return levels

    with mtp.profile(**DISPATCH):
        recorded = depth(0)
    assert limit - recorded < 100 + (limit - depth(0))
