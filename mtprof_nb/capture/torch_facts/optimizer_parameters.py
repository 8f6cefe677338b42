"""The parameter that an op of an optimizer has as input, found by the addresses of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from mtprof_nb.capture.torch_facts.garbage_collector import LivingObjects

#: Addresses of the tensors of one op: a group for each input that is a tensor or a list of them.
Addresses = Iterable[Iterable[int]]


def parameter_of(inputs: Addresses, owners: Mapping[int, str]) -> str | None:
    """The parameter that the first known input of an op belongs to; how many, for an op on many."""
    for addresses in inputs:
        found = {owners[address] for address in addresses if address in owners}
        if len(found) > 1:
            return f"{len(found)} parameters"
        if found:
            return found.pop()
    return None


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
