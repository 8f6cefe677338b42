"""Names for module instances: the path inside the outermost module that was called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mtprof_nb.building.called_modules import CalledModule, paths_by_callers
from mtprof_nb.capture.torch_facts.garbage_collector import LivingObjects


def paths_of_modules(called: Sequence[CalledModule], found: LivingObjects | None = None) -> list[str]:
    """A path such as `Net.encoder.0` for each module.

    Of a module that is gone, only class and caller are known: `Net.Linear`, or `Net.Linear_0` and `Net.Linear_1` where
    the caller called several.
    """
    torch = sys.modules.get("torch")
    if found is None and torch is not None:
        found = LivingObjects(torch)
    return paths_by_callers(called, _paths_of_living(called, found) if found is not None and called else {})


def _paths_of_living(called: Sequence[CalledModule], found: LivingObjects) -> dict[int, str]:
    """Paths of the modules that still exist, by address."""
    alive = {id(module): module for module in found.modules}
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
