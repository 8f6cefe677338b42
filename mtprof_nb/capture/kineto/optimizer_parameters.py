"""The parameter that each op of an optimizer updates, found by the address of the op's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from mtprof_nb.building.interning import intern
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.shared.garbage_collector import living
from mtprof_nb.model.trace import Int32

_STEP = "Optimizer.step#"
_TORCH_OP = 0
#: How names of torch's ops and nodes begin; no optimizer step runs inside them.
_OPS = ("aten::", "autograd::")


def updated_parameters(ops: ThreadIntervals, nodes: list[Any], torch: Any) -> tuple[Int32, tuple[str, ...]]:
    """The parameter that each op updates, as a position in the names that follow, or -1.

    `ops` are by thread, each thread's in order of time, the outer one of two nested ops first. `nodes` has the node of
    each in Kineto's tree, with its shapes; None where the tree has none.

    Parameters and the state that optimizers keep for them are recognised by their memory. An op on a temporary belongs
    to the parameter of the ops before and after it, if both have the same.
    """
    owners = _owners(torch)
    outermost = ops.outermost(np.ones(len(nodes), np.bool_))
    outer_ops, position = np.unique(outermost, return_inverse=True)
    known = _between([_parameter(nodes[row], owners) for row in outer_ops.tolist()])
    numbers, names = intern(known)
    return numbers[position], names


def nodes_in_steps(results: Any) -> dict[int, Any]:
    """Nodes of the ops under optimizer steps by correlation id, found without a walk through all other ops."""
    steps = _optimizer_steps(results.experimental_event_tree())
    return {node.correlation_id: node for step in steps for node in _with_inner(step)}


def nodes_by_id(nodes: Iterable[Any], wanted: Iterable[int]) -> dict[int, Any]:
    """Ops among `nodes` by correlation id, for the `wanted` ids."""
    ids = set(wanted)
    ops = (node for node in nodes if node.tag.value == _TORCH_OP)
    return {found: node for node in ops if (found := node.correlation_id) in ids}


def _optimizer_steps(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        name = node.name
        if name.startswith(_STEP):
            yield node
        elif not name.startswith(_OPS):
            yield from _optimizer_steps(node.children)


def _with_inner(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _with_inner(child)


def _parameter(node: Any, owners: dict[int, str]) -> str | None:
    """The parameter that the first known input of an op belongs to; how many, for an op on many."""
    if node is None:
        return None
    for value in node.extra_fields.inputs:
        tensors = value if isinstance(value, list) else [value]
        found = {owners.get(getattr(tensor, "storage_data_ptr", None) or 0) for tensor in tensors} - {None}
        if len(found) > 1:
            return f"{len(found)} parameters"
        if found:
            return found.pop()
    return None


def _between(known: list[str | None]) -> list[str | None]:
    """`known` with each gap between two ops of one parameter filled."""
    filled, last = list(known), -1
    for index, name in enumerate(known):
        if name is None:
            continue
        if last >= 0 and known[last] == name:
            filled[last:index] = [name] * (index - last)
        last = index
    return filled


def _owners(torch: Any) -> dict[int, str]:
    """The parameter that each block of living memory belongs to, by its address."""
    modules, optimizers = living(torch.nn.Module, torch.optim.Optimizer)
    names = _names(modules)
    owners: dict[int, str] = {}
    for optimizer in optimizers:
        with suppress(Exception):  # any object of the process: half made, or with methods of its own that fail
            owners |= _owned(optimizer, names, torch)
    return owners


def _owned(optimizer: Any, names: dict[int, str], torch: Any) -> dict[int, str]:
    """The parameter that each block of one optimizer belongs to, by address: parameters and the state kept for them."""
    owners: dict[int, str] = {}
    for index, parameter in enumerate(one for group in optimizer.param_groups for one in group["params"]):
        name = names.get(id(parameter), f"{type(optimizer).__name__}.params[{index}]")
        for tensor in (parameter, *_kept(optimizer, parameter, torch)):
            if address := _address(tensor):
                owners[address] = name
    return owners


def _names(modules: list[Any]) -> dict[int, str]:
    """`Net.encoder.0.weight` for each parameter, by the outermost module that has it."""
    inner: set[int] = set()
    for module in modules:
        with suppress(Exception):  # half made, as above: it has no children yet
            inner.update(id(child) for child in module.children())
    names: dict[int, str] = {}
    for module in modules:
        if id(module) not in inner:
            root = type(module).__name__
            with suppress(Exception):  # nor parameters
                for path, parameter in module.named_parameters():
                    names.setdefault(id(parameter), f"{root}.{path}")
    return names


def _kept(optimizer: Any, parameter: Any, torch: Any) -> list[Any]:
    state = optimizer.state.get(parameter, {})
    return [value for value in state.values() if isinstance(value, torch.Tensor)] if isinstance(state, dict) else []


def _address(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):  # a tensor without memory of its own
        return 0
