"""Operations of the ops that dominate a model, from shapes alone, for runtimes that have no formulas of their own.

A multiplication and an addition in a product of matrices are two operations, as in `torch.utils.flop_counter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

Shape = tuple[int, ...]


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
