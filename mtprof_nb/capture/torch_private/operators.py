"""Operators of torch: their packets, names and schemas, and calls past a subclass's overrides."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

#: Modules whose frames lie between a call and the op that it dispatches.
DISPATCH_MODULES = ("torch._ops", "torch.utils._python_dispatch", "torch.autograd.profiler")


def without_overrides(torch: Any) -> type[AbstractContextManager[None]]:
    """A context manager in which `__torch_function__` of a subclass of `Tensor` is not called."""
    overrides: type[AbstractContextManager[None]] = torch._C.DisableTorchFunctionSubclass
    return overrides


def packet_of(op: Any) -> Any:
    """The packet of an overload: `aten.add` of `aten.add.Tensor`; another callable is its own."""
    return getattr(op, "_overloadpacket", op)


def name_of_packet(packet: Any) -> str | None:
    """The full name of a packet, such as `aten::add`; None of another callable."""
    name: str | None = getattr(packet, "_qualified_op_name", None)
    return name


def arguments_of(op: Any) -> Any:
    """The declared arguments of an overload, each with `name` and `kwarg_only`."""
    return op._schema.arguments
