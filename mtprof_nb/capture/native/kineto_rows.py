"""Calls of a device's runtime, and events on devices, as Kineto's columns tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.model.kineto_kinds import kind_of_activity, kind_on_device
from mtprof_nb.model.trace import RUNTIME, Int8, Int32, Int64

#: How the names of calls begin that launch one kernel each.
_LAUNCHES = (
    *("cudaLaunchKernel", "cuLaunchKernel"),
    *("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunch"),
)
_TYPES: dict[str, npt.DTypeLike] = {
    **dict.fromkeys(("start", "duration", "resource", "correlation"), np.int64),
    **dict.fromkeys(("device", "name", "facts"), np.int32),
    "type": np.int8,
}


@dataclass(frozen=True)
class DeviceRows:
    """One row per call or event; times are those of `time.perf_counter_ns`."""

    start: Int64
    duration: Int64
    kind: Int8
    #: Position in `names`.
    name: Int32
    names: tuple[str, ...]
    #: Index of the device; of a call nothing.
    device: Int32
    #: The stream of an event on a device. Of a call its thread, as the runtime calls it.
    resource: Int64
    #: The number that a call shares with all that it launched, 0 for none.
    correlation: Int64
    #: Position in `fact_texts`, JSON objects as in `Trace.extras`, or -1.
    facts: Int32
    fact_texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_call(self) -> npt.NDArray[np.bool_]:
        """Which rows are calls on the host."""
        found: npt.NDArray[np.bool_] = self.kind == RUNTIME
        return found


def kind_of(activity: str) -> int:
    """The kind of activities that a device or its runtime has by this name."""
    return RUNTIME if kind_of_activity(activity) == RUNTIME else kind_on_device(activity)


def read_rows(raw: Mapping[str, Any]) -> DeviceRows:
    """The rows of one recording of Kineto's, from the recorder's columns."""
    columns = {name: np.frombuffer(raw[name], dtype) for name, dtype in _TYPES.items()}
    kinds = np.array([kind_of(activity) for activity in raw["types"]], np.int8)
    return DeviceRows(
        start=columns["start"],
        duration=columns["duration"],
        kind=kinds[columns["type"]],
        name=columns["name"],
        names=tuple(raw["names"]),
        device=columns["device"],
        resource=columns["resource"],
        correlation=columns["correlation"],
        facts=columns["facts"],
        fact_texts=tuple(raw["fact_texts"]),
    )


def missing_kernels(rows: DeviceRows) -> int:
    """How many calls have launched a kernel that Kineto has dropped the record of."""
    does_launch = np.array([*(name.startswith(_LAUNCHES) for name in rows.names), False])
    launches = rows.correlation[does_launch[rows.name] & rows.is_call]
    return int((~np.isin(launches, rows.correlation[~rows.is_call])).sum())


def joined(parts: Sequence[DeviceRows]) -> DeviceRows:
    """All rows of several recordings of Kineto's. Numbers that several use are made different."""
    if len(parts) == 1:
        return parts[0]
    shared = ("start", "duration", "kind", "device", "resource")
    found: dict[str, list[Any]] = {column: [] for column in shared}
    name, facts, correlation = [], [], []
    names: list[str] = []
    texts: list[str] = []
    used = 0
    for part in parts:
        for column, pieces in found.items():
            pieces.append(getattr(part, column))
        name.append(part.name + len(names))
        facts.append(np.where(part.facts >= 0, part.facts + len(texts), -1))
        correlation.append(np.where(part.correlation > 0, part.correlation + used, 0))
        names.extend(part.names)
        texts.extend(part.fact_texts)
        used += int(part.correlation.max(initial=0))
    whole = {column: np.concatenate(pieces) for column, pieces in found.items()}
    return DeviceRows(
        **whole,
        name=np.concatenate(name).astype(np.int32),
        facts=np.concatenate(facts).astype(np.int32),
        correlation=np.concatenate(correlation),
        names=tuple(names),
        fact_texts=tuple(texts),
    )
