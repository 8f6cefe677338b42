"""Tensors: a storage, a device, and a place in the autograd graph."""

from dataclasses import dataclass

import numpy as np

from ._storage import _CPUUntypedStorage


@dataclass(frozen=True)
class Device:
    type: str
    index: int | None = None


class Tensor:
    def __init__(self, array, device="cpu", requires_grad=False):
        self.device = Device(device) if isinstance(device, str) else device
        self._storage = _CPUUntypedStorage(np.ascontiguousarray(array, np.float32), self.device)
        self.requires_grad = requires_grad
        self.grad = None
        self.grad_fn = None

    @property
    def array(self):
        return self._storage.array

    @property
    def shape(self):
        return self.array.shape

    @property
    def dtype(self):
        return "float32"

    def __add__(self, other):
        return _call("add", self, other)

    def __mul__(self, other):
        return _call("mul", self, other)

    def __matmul__(self, other):
        return _call("matmul", self, other)

    def sum(self):
        return _call("sum", self)

    def backward(self):
        from ._autograd.engine import backward

        backward(self)


def _call(name, *args, **kwargs):
    from ._dispatch.dispatcher import dispatch

    return dispatch(name, args[0].device, *args, **kwargs)


def tensor(values, device="cpu", requires_grad=False):
    return Tensor(np.asarray(values, np.float32), device, requires_grad)


def ones(*shape, device="cpu", requires_grad=False):
    return Tensor(np.ones(shape, np.float32), device, requires_grad)
