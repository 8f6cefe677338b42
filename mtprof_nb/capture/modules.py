"""Names for module instances: the path inside the outermost module that was called."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any


def paths_of_modules(called: Sequence[tuple[int, str]]) -> list[str]:
    """A path such as `Net.encoder.0` for each (address, class name) called; the class name for one that is gone."""
    alive = _alive([address for address, _ in called])
    modules = {
        address: module
        for address, name in called
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
    return [paths.get(address, name) for address, name in called]


def _modules_of(module: Any) -> list[tuple[str, Any]]:
    """A module and those in it, with their paths; none where it fails when asked."""
    try:
        return [(path, child) for path, child in module.named_modules()]
    except Exception:  # the method is the user's, who has not asked for it
        return []


def _alive(addresses: Sequence[int]) -> dict[int, Any]:
    """The living `nn.Module` instances at these addresses, found without touching any other object."""
    torch = sys.modules.get("torch")
    wanted = set(addresses)
    if torch is None or not wanted:
        return {}
    base = torch.nn.Module
    return {id(found): found for found in gc.get_objects() if id(found) in wanted and issubclass(type(found), base)}
