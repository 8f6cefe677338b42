"""The parameter that each op of an optimizer updates, found by the address of the op's inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from mtprof_nb.building.interning import intern
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.capture.torch_facts.garbage_collector import LivingObjects
from mtprof_nb.model.trace import Int32

#: Addresses of the tensors of one op: a group for each input that is a tensor or a list of them.
Addresses = Iterable[Iterable[int]]


def updated_parameters(ops: ThreadIntervals, own: Callable[[int], str | None]) -> tuple[Int32, tuple[str, ...]]:
    """The parameter that each op updates, as a position in the names that follow, or -1.

    `ops` are by thread, each thread's in order of time, the outer one of two nested ops first. `own` tells the
    parameter of the op at a position by its own inputs, None where they tell none. An op on a temporary belongs to the
    parameter of the ops before and after it, if both have the same.
    """
    outermost = ops.outermost(np.ones(len(ops), np.bool_))
    outer_ops, position = np.unique(outermost, return_inverse=True)
    numbers, names = intern(_between([own(row) for row in outer_ops.tolist()]))
    return numbers[position], names


def parameter_of(inputs: Addresses, owners: Mapping[int, str]) -> str | None:
    """The parameter that the first known input of an op belongs to; how many, for an op on many."""
    for addresses in inputs:
        found = {owners[address] for address in addresses if address in owners}
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


def parameter_owners(found: LivingObjects) -> dict[int, str]:
    """The parameter that each block of living memory belongs to, by its address: its own, or the state kept for it."""
    names = _names(found.modules)
    owners: dict[int, str] = {}
    for optimizer in found.optimizers:
        with suppress(Exception):  # any object of the process: half made, or with methods of its own that fail
            owners |= _owned(optimizer, names, found.torch)
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
