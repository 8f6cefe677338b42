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
    inner = {id(child) for module in modules.values() for child in module.modules() if child is not module}
    paths: dict[int, str] = {}
    for module in modules.values():
        if id(module) in inner:
            continue
        root = type(module).__name__
        for path, child in module.named_modules():
            paths.setdefault(id(child), f"{root}.{path}" if path else root)
    return [paths.get(address, name) for address, name in called]


def _alive(addresses: Sequence[int]) -> dict[int, Any]:
    """The living `nn.Module` instances at these addresses, found without touching any other object."""
    torch = sys.modules.get("torch")
    wanted = set(addresses)
    if torch is None or not wanted:
        return {}
    base = torch.nn.Module
    return {id(found): found for found in gc.get_objects() if id(found) in wanted and issubclass(type(found), base)}
