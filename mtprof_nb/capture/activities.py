"""The kinds of device that can be recorded, and the choice of the user."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from mtprof_nb.capture.registry import HOOK_KINDS
from mtprof_nb.errors import warn


class ProfilerActivity(Enum):
    """A kind of device whose events are recorded. NPU is what torch calls PrivateUse1."""

    CPU = "CPU"
    CUDA = "CUDA"
    XPU = "XPU"
    MTIA = "MTIA"
    HPU = "HPU"
    NPU = "NPU"


#: The activities of devices, in the order in which torch chooses one of several.
DEVICES = tuple(activity.value for activity in ProfilerActivity if activity is not ProfilerActivity.CPU)
_EVERY = frozenset(activity.value for activity in ProfilerActivity)
_OTHER_NAMES = {"PRIVATEUSE1": "NPU", "GPU": "CUDA"}


def supported_activities() -> set[ProfilerActivity]:
    """Activities that the runtimes imported now can record."""
    kinds = [kind for kind in HOOK_KINDS.values() if kind.runtime_is_imported]
    names = {"CPU", *(name.upper() for kind in kinds for name in kind.devices(sys.modules[kind.runtime]))}
    names = {_OTHER_NAMES.get(name, name) for name in names}
    return {activity for activity in ProfilerActivity if activity.value in names}


def available(names: frozenset[str]) -> frozenset[str]:
    """The activities of `names` that the imported runtimes can record. Warns of each other one that was chosen."""
    supported = frozenset(activity.value for activity in supported_activities())
    if names != _EVERY:
        _warn_of(names - supported)
    return names & supported


def _warn_of(missing: Iterable[str]) -> None:
    for name in sorted(missing):
        warn(f"{name} is not available here and is not recorded")


def as_activity(item: Any) -> ProfilerActivity:
    """Our activity for a name or an enum member, ours or a runtime's; unknown is a `ValueError`."""
    if isinstance(item, ProfilerActivity):
        return item
    name = (item if isinstance(item, str) else getattr(item, "name", str(item))).split(".")[-1].upper()
    try:
        return ProfilerActivity(_OTHER_NAMES.get(name, name))
    except ValueError:
        supported = ", ".join(activity.value for activity in ProfilerActivity if activity in supported_activities())
        msg = f"unknown activity {item!r}: supported here are {supported}"
        raise ValueError(msg) from None


def resolve_activities(items: Iterable[Any] | None) -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
    """Names of the activities to record, and torch's filters `{activity: [kinds of event]}` where given.

    None stands for every supported activity. An activity that cannot be recorded here is left out with a warning;
    before a runtime is imported that is not known, and `available` checks it later. A filter may also be torch's
    `ProfilerActivityConfig`. The same activity twice is a `ValueError`, as in torch.
    """
    is_known = any(kind.runtime_is_imported for kind in HOOK_KINDS.values())
    supported = frozenset(activity.value for activity in supported_activities()) if is_known else _EVERY
    if items is None:
        return supported, {}
    if isinstance(items, str):
        msg = f"activities must be a list: write [{items!r}] for {items!r}"
        raise ValueError(msg)
    chosen: set[str] = set()
    filters: dict[str, frozenset[str]] = {}
    for item in items:
        for one in item if isinstance(item, Mapping) else (item,):
            activity = as_activity(one)
            if activity.value in chosen:
                msg = f"activity {activity.value} specified more than once: name each activity once"
                raise ValueError(msg)
            chosen.add(activity.value)
            kinds = _kinds_of_event(item[one]) if isinstance(item, Mapping) else None
            if kinds is not None:
                filters[activity.value] = kinds
    if not supported & chosen:
        asked, possible = (", ".join(sorted(names)) for names in (chosen, supported))
        msg = f"none of these activities can be recorded here: {asked or 'an empty list'}; supported are {possible}"
        raise ValueError(msg)
    _warn_of(chosen - supported)
    return supported & chosen, filters


def _kinds_of_event(chosen: Any) -> frozenset[str] | None:
    """Kinds of event from a list of their names, or from torch's `ProfilerActivityConfig`; None for all."""
    extensions = getattr(chosen, "profiler_configs", ())
    if extensions:
        names = ", ".join(type(extension).__name__ for extension in extensions)
        msg = f"{names}: hardware counters and other recorders are not used here; leave it out, or use torch.profiler"
        raise ValueError(msg)
    kinds = getattr(chosen, "activity_types", chosen)
    return None if kinds is None else frozenset(kinds)


def with_cuda(activities: Iterable[Any] | None, use_cuda: bool | None) -> Iterable[Any] | None:
    """`activities` as torch's deprecated `use_cuda` changes them."""
    if use_cuda is None:
        return activities
    message = "`use_cuda` is deprecated, use `activities` argument instead"
    warnings.warn(message, FutureWarning, stacklevel=3)
    chosen = set(map(as_activity, resolve_activities(None)[0] if activities is None else activities))
    cuda = as_activity("CUDA")
    return (chosen | {cuda}) if use_cuda else (chosen - {cuda})


def device_type_name(torch_name: str) -> str:
    """The name that recordings have for a torch device type: CPU, CUDA, NPU for a renamed PrivateUse1, …"""
    return "NPU" if torch_name.lower() in ("privateuse1", "privateuseone", "npu") else torch_name.upper()
