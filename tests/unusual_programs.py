"""Programs that a profiler seldom meets."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch


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


def values_that_vary() -> Any:
    """Each op has another number or list than the one before, more often than values are numbered."""
    rows, found = torch.arange(200.0), []
    for number in range(200):
        found.append(float(rows[number]) + float(torch.full((), number * 0.5)) + (2**40 + number))
        torch.full((2,), 2**40 + number)
        torch.add(rows, rows, alpha=-number).reshape(-1, 1 + number % 2).squeeze()
        torch.clamp(rows, min=None if number % 3 else number, max=number + 0.25)
        torch.full((1,), complex(number, -number))
    torch.sin(rows[:2])
    return found


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
    "values that vary": (values_that_vary, "aten::sin"),
    "a million small numbers": (lambda: torch.sin(torch.ones(1_000_000)).sum().item(), "aten::sin"),
}
