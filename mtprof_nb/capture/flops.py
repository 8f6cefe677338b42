"""Numbers of floating point operations, from formulas and the shapes and values of inputs.

PyTorch has formulas of its own. Those here are for runtimes without, and for ops that Kineto counts. A multiplication
and an addition in a product of matrices are two operations, as in `torch.utils.flop_counter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.capture.torch_private.operators import arguments_of, name_of_packet
from mtprof_nb.model.input_values import from_text
from mtprof_nb.model.trace import Int32, Int64, Shapes, Trace

Shape = tuple[int, ...]
Formula = Callable[..., int]
#: Ops that Kineto counts by formulas of its own, from shapes alone.
_AS_KINETO = ("aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::add", "aten::mul")
#: Types of inputs that are no tensor of its own; "" of one that is undefined, or has no sizes.
_NO_TENSOR = ("", "Scalar", "ScalarList", "TensorList")


def flops_of(name: str, args: Sequence[Any]) -> int:
    """Operations of one call, -1 where no formula is known for the op or it does not take these arguments."""
    formula = _FORMULAS.get(name)
    if formula is None:
        return -1
    try:
        return formula(args)
    except (AttributeError, IndexError, TypeError, ValueError, ZeroDivisionError):
        return -1


def elementwise(first: Any, *_others: Any, **_keywords: Any) -> int:
    """One operation for each element of the first input, as Kineto counts `aten::add` and `aten::mul`."""
    return prod(_shape(first))


def _matmul(args: Sequence[Any], first: int = 0) -> int:
    left, right = _shape(args[first]), _shape(args[first + 1])
    rows = left[-2] if len(left) > 1 else 1
    columns = right[-1] if len(right) > 1 else 1
    return 2 * prod(_broadcast(left[:-2], right[:-2])) * rows * left[-1] * columns


def _shape(tensor: Any) -> Shape:
    return tuple(map(int, tensor.shape))


def _broadcast(left: Shape, right: Shape) -> list[int]:
    width = max(len(left), len(right))
    padded = ((1,) * (width - len(shape)) + shape for shape in (left, right))
    return [max(a, b) for a, b in zip(*padded, strict=True)]


def _convolution(args: Sequence[Any]) -> int:
    image, weight = _shape(args[0]), _shape(args[1])
    dimensions = len(weight) - 2
    stride, padding, dilation = (
        _each(args[3 + position] if len(args) > 3 + position else None, default, dimensions)
        for position, default in enumerate((1, 0, 1))
    )
    output = [
        (image[axis - dimensions] + 2 * padding[axis] - dilation[axis] * (weight[2 + axis] - 1) - 1) // stride[axis] + 1
        for axis in range(dimensions)
    ]
    batch = image[0] if len(image) > dimensions + 1 else 1
    return 2 * batch * weight[0] * prod(output) * prod(weight[1:])


def _each(value: Any, default: int, dimensions: int) -> list[int]:
    """One number for each axis, from one for all, one for each, or none."""
    if value is None:
        return [default] * dimensions
    return [int(value)] * dimensions if isinstance(value, int) else [int(one) for one in value]


_FORMULAS: dict[str, Callable[[Sequence[Any]], int]] = {
    **dict.fromkeys(("add", "mul"), lambda args: elementwise(*args)),
    **dict.fromkeys(("mm", "bmm", "matmul"), _matmul),
    **dict.fromkeys(("addmm", "baddbmm"), lambda args: _matmul(args, 1)),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
}


class Inputs(NamedTuple):
    """For each event a position in `shapes` and in `dtypes`, or -1."""

    position: Int32
    shapes: Sequence[Shapes]
    dtypes: Sequence[Sequence[str]]


class _Shaped(NamedTuple):
    shape: Any


def registered_formulas() -> dict[str, Formula]:
    """PyTorch's formulas by the name of their op."""
    registry = import_module("torch.utils.flop_counter").flop_registry
    return {name: registry[packet] for packet in registry if (name := name_of_packet(packet))}


def flops_by_inputs(
    torch: Any, events: RecordedEvents | Trace, inputs: Inputs, values: tuple[Int32, Sequence[str]]
) -> Int64:
    """Operations of each event, -1 where there is no formula for it. `values` are positions and their table."""
    known = registered_formulas()
    names = events.names
    rows = np.flatnonzero(events.where_name({*known, *_AS_KINETO}.__contains__) & (inputs.position >= 0))
    flops = np.full(len(events), -1, np.int64)
    sizes = len(names), len(inputs.shapes), len(values[1]) + 1
    calls = np.ravel_multi_index((events.name[rows], inputs.position[rows], values[0][rows] + 1), sizes)
    distinct, of_call = np.unique(calls, return_inverse=True)
    texts = ("[[],[]]", *values[1])
    counted = [
        _count(torch, names[name], known, (inputs.shapes[form], inputs.dtypes[form]), texts[value])
        for name, form, value in zip(*(part.tolist() for part in np.unravel_index(distinct, sizes)), strict=True)
    ]
    flops[rows] = np.array(counted, np.int64)[of_call]
    return flops


def _count(
    torch: Any, name: str, known: dict[str, Formula], form: tuple[Sequence[Any], Sequence[str]], text: str
) -> int:
    shapes, dtypes = form
    scalars = from_text(text)[0]
    if name in known:
        return count_by_formula(torch, name, known[name], shapes, scalars)
    if name in ("aten::add", "aten::mul"):
        return elementwise(_Shaped(shapes[0])) if shapes and dtypes[0] not in _NO_TENSOR else -1
    arguments = [_Shaped(shape) if shape else scalar for shape, scalar in zip(shapes, scalars, strict=True)]
    return flops_of(name.removeprefix("aten::"), arguments)


def count_by_formula(torch: Any, name: str, formula: Formula, inputs: Sequence[Any], scalars: Sequence[Any]) -> int:
    """The formula applied to meta tensors of these shapes, -1 where it does not take them."""
    try:
        arguments = [
            torch.empty(shape, device="meta") if scalar is None and shape else scalar
            for shape, scalar in zip(inputs, scalars, strict=True)
        ]
        op = getattr(torch.ops.aten, name.removeprefix("aten::")).default
        specs = arguments_of(op)
        by_name = {spec.name: value for spec, value in zip(specs, arguments, strict=False)}
        keywords = {spec.name for spec in specs if spec.kwarg_only}
        positional = [value for key, value in by_name.items() if key not in keywords]
        result = op(*positional, **{key: by_name[key] for key in keywords & by_name.keys()})
        return int(formula(*positional, out_val=result))
    except Exception:  # a formula is PyTorch's or a library's: where it fails there is no number
        return -1
