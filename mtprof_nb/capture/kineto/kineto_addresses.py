"""Addresses of the inputs of ops, from the nodes of Kineto's tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_STEP = "Optimizer.step#"
_TORCH_OP = 0
#: How names of torch's ops and nodes begin; no optimizer step runs inside them.
_OPS = ("aten::", "autograd::")


def nodes_in_steps(results: Any) -> dict[int, Any]:
    """Nodes of the ops under optimizer steps by correlation id, found without a walk through all other ops."""
    steps = _optimizer_steps(results.experimental_event_tree())
    return {node.correlation_id: node for step in steps for node in _with_inner(step)}


def nodes_by_id(nodes: Iterable[Any], wanted: Iterable[int]) -> dict[int, Any]:
    """Ops among `nodes` by correlation id, for the `wanted` ids."""
    ids = set(wanted)
    ops = (node for node in nodes if node.tag.value == _TORCH_OP)
    return {found: node for node in ops if (found := node.correlation_id) in ids}


def addresses_of_inputs(node: Any) -> Iterator[list[int]]:
    """The addresses of the tensors of each input of an op; none for None."""
    for value in node.extra_fields.inputs if node is not None else ():
        tensors = value if isinstance(value, list) else [value]
        yield [getattr(tensor, "storage_data_ptr", None) or 0 for tensor in tensors]


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
