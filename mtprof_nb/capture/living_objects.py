"""Modules and optimizers of PyTorch that exist: paths of modules, and the parameter at an address."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from mtprof_nb.building.called_modules import CalledModule, paths_by_callers


def living(*bases: type) -> list[list[Any]]:
    """The living instances of each class, in the order of `bases`. Other objects are not touched."""
    instances: list[list[Any]] = [[] for _ in bases]
    home: dict[type, list[Any] | None] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in home:
            of_base = zip(instances, bases, strict=True)
            home[kind] = next((things for things, base in of_base if issubclass(kind, base)), None)
        if (things := home[kind]) is not None:
            things.append(thing)
    return instances


class LivingObjects:
    """Modules and optimizers that exist, searched once, when either is first needed."""

    def __init__(self, torch: Any, search: Callable[..., list[list[Any]]] = living) -> None:
        self.torch = torch
        self._search = search

    @property
    def modules(self) -> list[Any]:
        """Instances of `torch.nn.Module`."""
        return self._objects[0]

    @property
    def optimizers(self) -> list[Any]:
        """Instances of `torch.optim.Optimizer`."""
        return self._objects[1]

    @cached_property
    def _objects(self) -> list[list[Any]]:
        return self._search(self.torch.nn.Module, self.torch.optim.Optimizer)


def paths_of_modules(called: Sequence[CalledModule], objects: LivingObjects | None = None) -> list[str]:
    """A path such as `Net.encoder.0` for each module.

    Of a module that is gone, only class and caller are known: `Net.Linear`, or `Net.Linear_0` and `Net.Linear_1` where
    the caller called several.
    """
    torch = sys.modules.get("torch")
    if objects is None and torch is not None:
        objects = LivingObjects(torch)
    known = _paths_of_living(called, objects) if objects is not None and called else {}
    return paths_by_callers(called, known)


def _paths_of_living(called: Sequence[CalledModule], objects: LivingObjects) -> dict[int, str]:
    """Paths of the modules that still exist, by address."""
    alive = {id(module): module for module in objects.modules}
    modules = {
        address: module
        for address, name, _ in called
        if (module := alive.get(address)) is not None and type(module).__name__ == name
    }
    inside = {address: _modules_of(module) for address, module in modules.items()}
    inner = {id(child) for address, named in inside.items() for _, child in named if id(child) != address}
    paths: dict[int, str] = {}
    for address, named in inside.items():
        if address in inner:
            continue
        root = type(modules[address]).__name__
        for path, child in named:
            paths.setdefault(id(child), f"{root}.{path}" if path else root)
    return paths


def _modules_of(module: Any) -> list[tuple[str, Any]]:
    """A module and the modules in it, with their paths; none where `named_modules` fails."""
    try:
        return [(path, child) for path, child in module.named_modules()]
    except Exception:  # the method may be the user's
        return []


def parameter_of(inputs: Iterable[Iterable[int]], owners: Mapping[int, str]) -> str | None:
    """The parameter of the first known input of an op, or how many, such as "3 parameters".

    `inputs` has the addresses of each input, which is one tensor or a list of them.
    """
    for addresses in inputs:
        names = {owners[address] for address in addresses if address in owners}
        if len(names) > 1:
            return f"{len(names)} parameters"
        if names:
            return names.pop()
    return None


def parameter_owners(objects: LivingObjects) -> dict[int, str]:
    """For each address of a parameter, or of an optimizer's state for it, the parameter's name."""
    names = _names(objects.modules)
    owners: dict[int, str] = {}
    for optimizer in objects.optimizers:
        with suppress(Exception):  # half made, or its methods fail
            owners |= _owned(optimizer, names, objects.torch)
    return owners


def _owned(optimizer: Any, names: dict[int, str], torch: Any) -> dict[int, str]:
    """The parameters of one optimizer, by their addresses and those of their state."""
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
        with suppress(Exception):  # half made: it has no children yet
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
