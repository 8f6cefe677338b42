"""Paths of modules by who called them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class CalledModule(NamedTuple):
    """A module instance, and the one that called it: a position among those called before it, or -1."""

    address: int
    class_name: str
    caller: int


def paths_by_callers(called: Sequence[CalledModule], known: Mapping[int, str]) -> list[str]:
    """A path for each module: the known one of its address, or its class behind the path of its caller.

    Where the caller called several of one class, they are numbered: `Net.Linear_0` and `Net.Linear_1`.
    """
    of_caller: dict[tuple[int, str], dict[int, int]] = {}
    for module in called:
        if module.address not in known:
            siblings = of_caller.setdefault((module.caller, module.class_name), {})
            siblings.setdefault(module.address, len(siblings))
    paths: list[str] = []
    for address, name, caller in called:
        siblings = of_caller.get((caller, name), {})
        if address in known or caller < 0:
            paths.append(known.get(address, name))
        else:
            number = f"_{siblings[address]}" if len(siblings) > 1 else ""
            paths.append(f"{paths[caller]}.{name}{number}")
    return paths
