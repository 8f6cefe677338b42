"""Groups of kernels, copies and collectives, and the keys that they are grouped by."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.costs import averaged_name, op_costs
from mtprof_nb.analysis.devices.kernel_owners import is_graph_launch, kernel_owners
from mtprof_nb.analysis.devices.recorded_devices import device_numbers, device_work
from mtprof_nb.analysis.fields import entry
from mtprof_nb.analysis.groups import KEYS, Groups, Key, group, in_table, name_ids, sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import COLLECTIVE, COPY, Collective, Int32, Int64, Trace

#: The direction in the name of a copy: Kineto writes `Memcpy HtoD (Pageable -> Device)`, XPU's runtime `M2D`.
_DIRECTION = re.compile(r"(?<![A-Za-z0-9])([HDPAMS])(?:to|2)([HDPAMS])(?![A-Za-z0-9])", re.IGNORECASE)
#: Memory and shared memory of XPU are the host's.
_ENDS = {"M": "H", "S": "H"}
_MEMORIES = re.compile(r"\(([^()]*->[^()]*)\)")


class LaunchShape(NamedTuple):
    """How a kernel was launched: the sizes of its grid and of its blocks, () where they are not known."""

    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


class Direction(NamedTuple):
    """From where to where a copy went, "" where its name does not contain it."""

    #: `HtoD` from host to device, `DtoH`, `DtoD`, `PtoP` between devices.
    way: str = ""
    #: The kinds of memory, as `Pageable -> Device`.
    memories: str = ""


@dataclass(frozen=True, eq=False)
class KernelFacts:
    """Facts of each event from its metadata."""

    #: Position in `shapes`.
    shape: Int32
    shapes: tuple[LaunchShape, ...]
    #: How much of a multiprocessor a kernel is estimated to occupy, in percent; -1 if unknown.
    occupancy: Int32


@once_a_trace
def kernel_facts(trace: Trace) -> KernelFacts:
    """The facts of all kernels, copies, sets and collectives; of other events nothing is known."""
    shapes = {LaunchShape(): 0}
    of_extra = []
    for text in trace.extras:
        metadata = json.loads(text)
        shape = LaunchShape(_sizes(metadata.get("grid")), _sizes(metadata.get("block")))
        occupancy = _percent(metadata.get("est. achieved occupancy %"))
        of_extra.append((shapes.setdefault(shape, len(shapes)), occupancy))
    facts = np.array([*of_extra, (0, -1)], np.int32)
    extra = np.full(len(trace), -1, np.int32) if trace.extra is None else trace.extra
    shape, occupancy = facts[np.where(trace.is_device_work, extra, -1)].T
    return KernelFacts(shape, tuple(shapes), occupancy)


def _sizes(value: Any) -> tuple[int, ...]:
    """Sizes from a list, or from its JSON text; () for anything else."""
    try:
        sizes = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return ()
    return tuple(sizes) if isinstance(sizes, list) and all(isinstance(size, int) for size in sizes) else ()


def _percent(value: Any) -> int:
    try:
        return round(float(value))
    except (TypeError, ValueError, OverflowError):
        return -1


def direction_of(name: str) -> Direction:
    """The direction in the name of a copy."""
    ends, memories = _DIRECTION.search(name), _MEMORIES.search(name)
    way = "to".join(_ENDS.get(end.upper(), end.upper()) for end in ends.groups()) if ends else ""
    return Direction(way, memories[1].strip() if memories else "")


def op_of_kernel(trace: Trace, event: int) -> str:
    """The name of the op that a kernel belongs to, and of the call that launched its graph; "" if none is known."""
    owner = int(kernel_owners(trace)[event])
    launch = -1 if trace.launch is None else int(trace.launch[event])
    names = [averaged_name(trace.names[trace.name[owner]])] if owner >= 0 else []
    if launch >= 0 and launch != owner and is_graph_launch(trace)[launch]:
        names.append(trace.names[trace.name[launch]])
    return ", ".join(names)


def _numbers_of_ops(trace: Trace) -> Int64:
    """A number for each pair of an owner's name and the name of the call that launched a graph."""
    names = np.append(name_ids(trace), -1).astype(np.int64)
    launch = np.full(len(trace), -1, np.int32) if trace.launch is None else trace.launch
    graph = np.where(np.append(is_graph_launch(trace), False)[launch], names[launch], -1)
    numbers: Int64 = (names[kernel_owners(trace)] + 1) * (len(trace.names) + 1) + graph + 1
    return numbers


def launch_shape(trace: Trace, event: int) -> LaunchShape:
    """How a kernel was launched."""
    facts = kernel_facts(trace)
    return facts.shapes[int(facts.shape[event])]


def collective_of_event(trace: Trace, event: int) -> Collective:
    """A collective without its numbers of elements. If the runtime does not describe it, it has its kernel's name."""
    described = entry(trace.collective, trace.collectives, event)
    return Collective(trace.names[trace.name[event]]) if described is None else _without_sizes(described)


def _without_sizes(collective: Collective) -> Collective:
    return collective._replace(in_elements=-1, out_elements=-1)


def _numbers_of_collectives(trace: Trace) -> Int64:
    """A number for each collective that the runtime describes; for the others, one for each name."""
    described = in_table("collective", "collectives", _without_sizes).numbers(trace)
    return np.where(described >= 0, described, len(trace.collectives) + trace.name)


def _read_devices(trace: Trace) -> Callable[[int], str]:
    titles = [str(device) for device in device_work(trace)]
    return lambda event: titles[device_numbers(trace)[event]]


DEVICE = Key(device_numbers, _read_devices)
OP_OF_KERNEL = Key(_numbers_of_ops, lambda trace: partial(op_of_kernel, trace))
LAUNCH_SHAPE = Key(lambda trace: kernel_facts(trace).shape, lambda trace: partial(launch_shape, trace))
DIRECTION = in_table("name", "names", direction_of)
COLLECTIVE_FACTS = Key(_numbers_of_collectives, lambda trace: partial(collective_of_event, trace))
#: The keys of a kernel of one name that belongs to one op, runs on one stream and is always launched in the same way.
KERNEL_KEYS = (KEYS["name"], KEYS["kind"], OP_OF_KERNEL, KEYS["thread"], LAUNCH_SHAPE)


@dataclass(frozen=True, eq=False)
class KernelGroups:
    """Kernels, copies, sets and collectives by `KERNEL_KEYS`; the time of a group is its `device_ns`."""

    groups: Groups
    shortest_ns: Int64
    longest_ns: Int64
    #: The mean of the estimated occupancy in percent, weighed by time; -1 where it is not known.
    occupancy: npt.NDArray[np.float64]


@once_a_trace
def kernel_groups(trace: Trace) -> KernelGroups:
    """All work on devices, one group for each kernel, op, stream and shape of the launch."""
    work = np.flatnonzero(trace.is_device_work)
    groups = group(trace, *KERNEL_KEYS, costs=op_costs(trace), positions=work)
    number, duration, occupancy = groups.of_event[work], trace.duration_ns[work], kernel_facts(trace).occupancy[work]
    shortest, longest = np.full(len(groups), np.iinfo(np.int64).max), np.zeros(len(groups), np.int64)
    np.minimum.at(shortest, number, duration)
    np.maximum.at(longest, number, duration)
    known = occupancy >= 0
    weight = sums(number[known], duration[known], len(groups))
    weighed = sums(number[known], duration[known] * occupancy[known], len(groups))
    return KernelGroups(groups, shortest, longest, np.where(weight > 0, weighed / np.maximum(weight, 1), -1.0))


@once_a_trace
def copy_groups(trace: Trace) -> Groups:
    """Copies by device and direction."""
    copies = np.flatnonzero(trace.kind == COPY)
    return group(trace, DEVICE, DIRECTION, costs=op_costs(trace), positions=copies)


@once_a_trace
def collective_groups(trace: Trace) -> Groups:
    """Collectives by device, name, group of processes and element type."""
    collectives = np.flatnonzero(trace.kind == COLLECTIVE)
    return group(trace, DEVICE, COLLECTIVE_FACTS, costs=op_costs(trace), positions=collectives)
