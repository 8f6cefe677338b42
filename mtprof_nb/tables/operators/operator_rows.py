"""Rows of the operators table: the costs of each group of events, under any of the groupings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.analysis.compiled_regions import REGION_PART, has_regions
from mtprof_nb.analysis.costs import averaged_costs, op_costs
from mtprof_nb.analysis.devices.kernel_groups import KERNEL_KEYS, kernel_groups
from mtprof_nb.analysis.families import SCOPES, families
from mtprof_nb.analysis.groups import Groups, Key, group
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.memory.missing_memory import has_memory
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.analysis.ranks.rank_lines import spread_of_events
from mtprof_nb.analysis.shape_texts import shapes_and_types_text, type_name
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import DEVICE_SCOPE, PYTHON, RUNTIME, SCOPE, Bool, Int32, Int64, Trace
from mtprof_nb.tables.operators.operator_table import OperatorRows, with_containers
from mtprof_nb.tables.operators.spent import allocated_by, spent_by
from mtprof_nb.tables.table import TableColumn


class Grouping(NamedTuple):
    """A way to group events: its title, and keys of `analysis.groups`."""

    title: str
    keys: tuple[str | Key, ...]
    #: The flag that records the key, "" for a key that every recording has.
    flag: str = ""


GROUPINGS = {
    "op": Grouping("op", ("name", "device", "kind")),
    "shapes": Grouping("op + shapes", ("name", "device", "kind", "shapes", "types"), "--record-shapes"),
    "types": Grouping("op + types", ("name", "device", "kind", "types"), "--record-shapes"),
    "line": Grouping("op + source line", ("name", "device", "kind", "line"), "--with-stack"),
    "scope": Grouping("scope", ("scope",)),
    "module": Grouping("module", ("module",), "--with-modules"),
    "thread": Grouping("thread", ("thread",)),
    "kernel": Grouping("kernel", KERNEL_KEYS),
    "region": Grouping("compiled region", (REGION_PART,)),
}
#: Groupings whose rows are ops. A row of the others holds all that ran in a scope, or the ops of a module or thread.
_BY_OP = ("op", "shapes", "types", "line")


_COLUMNS = (
    TableColumn("count", "Calls", "count", "how often it ran"),
    TableColumn("self_ns", "Self", "time", "time in it, without what it called"),
    TableColumn(
        "share", "Share", "share", "self time as a share of the program's time, in ops and outside", of="self_ns"
    ),
    TableColumn("total_ns", "Total", "time", "time in it, with what it called"),
    TableColumn("average_ns", "Average", "time", "total time of one call"),
)
#: Calls of modules and threads are not recorded.
_COLUMNS_OF_OPS = (
    TableColumn("count", "Ops", "count", "ops that ran in it, nested ones too"),
    TableColumn("self_ns", "Self", "time", "time in its ops"),
    *_COLUMNS[2:3],
)
_WITH_SUBMODULES = TableColumn("total_ns", "Total", "time", "time in its ops and in those of its submodules")
_DEVICE = TableColumn("device_ns", "Device", "time", "time of the kernels it launched")
_DEVICE_OF_OPS = (
    TableColumn("self_device_ns", "Self device", "time", "time of the kernels it launched itself, or of the kernel"),
    TableColumn(
        "device_share", "Device %", "share", "self device time as a share of all work on devices", "self_device_ns"
    ),
    TableColumn("device_ns", "Device", "time", "time of the kernels it launched, with what it called"),
    TableColumn("device_average_ns", "Dev avg", "time", "device time of one call"),
)
_COLUMNS_OF_KERNELS = (
    TableColumn("count", "Calls", "count", "how often it ran"),
    TableColumn("device_ns", "Device", "time", "its time on the device"),
    TableColumn("device_share", "Device %", "share", "its time as a share of all work on devices", "device_ns"),
    TableColumn("device_average_ns", "Average", "time", "time of one call"),
    TableColumn("shortest_ns", "Min", "time", "time of its shortest call"),
    TableColumn("longest_ns", "Max", "time", "time of its longest call"),
)
_OCCUPANCY = TableColumn("occupancy", "Occupancy", "percent", "estimated share of a multiprocessor that it occupied")
_MOVED = (
    TableColumn("moved_bytes", "Bytes", "bytes", "bytes that copies, sets and collectives moved"),
    TableColumn("bytes_per_s", "Bandwidth", "rate", "bytes moved in a second of its time"),
)
_MEMORY = TableColumn("self_bytes", "Memory", "bytes", "bytes it allocated itself, less those it released")
_ALLOCATED = TableColumn(
    "allocated_bytes", "Allocated", "bytes", "bytes it allocated, with what it called, released or not"
)
_ALLOCATED_IN = TableColumn("allocated_bytes", "Allocated", "bytes", "bytes allocated in it, released or not")
_OF_RANKS = (
    TableColumn("least_ns", "Least rank", "time", "self time on the rank with the least"),
    TableColumn("median_ns", "Median rank", "time", "self time on half of the ranks is less"),
    TableColumn("most_ns", "Most", "time", "self time on the rank with the most"),
    TableColumn("most_rank", "On", "rank", "the rank with the most self time"),
)
_FLOPS = TableColumn("flops", "FLOPs", "flops", "floating point operations, where a formula is known")
#: Columns that replace the column of memory where rows are sorted by it.
_INSTEAD = {
    column.key: column
    for column in (
        _MEMORY,
        TableColumn("cpu_bytes", "CPU mem", "bytes", "bytes of the CPU, with what it called, less those released"),
        TableColumn("self_cpu_bytes", "Self CPU mem", "bytes", "bytes of the CPU, its own, less those released"),
        TableColumn(
            "device_bytes", "Device mem", "bytes", "bytes of devices, with what it called, less those released"
        ),
        TableColumn("self_device_bytes", "Self dev mem", "bytes", "bytes of devices, its own, less those released"),
    )
}
_REPLACED = (_MEMORY.key, _ALLOCATED.key)


#: Columns that are sums of `Groups`.
_SUMMED = ["device_ns", "self_device_ns", "cpu_bytes", "self_cpu_bytes", "device_bytes", "self_device_bytes", "flops"]


def showing(rows: OperatorRows, key: str) -> OperatorRows:
    """`rows` with the column `key` in place of the default one of memory; only rows of ops have it."""
    instead = _INSTEAD.get(key)
    if instead is None or rows.grouping not in _BY_OP:
        return rows
    return replace(rows, columns=tuple(instead if column.key in _REPLACED else column for column in rows.columns))


def offered(trace: Trace) -> list[str]:
    """The groupings that a table offers: kernels and compiled regions only if there are any."""
    absent = {"kernel": not trace.is_device_work.any(), "region": not has_regions(trace)}
    return [grouping for grouping in GROUPINGS if not absent.get(grouping)]


def missing_flag(trace: Trace, grouping: str) -> str:
    """The flag that was missing to record the key of a grouping, "" if it was recorded."""
    line = trace.line if trace.line is not None else trace.stack
    types = trace.shape if trace.dtypes else None
    there = {"shapes": trace.shape, "types": types, "line": line, "module": trace.module}
    return GROUPINGS[grouping].flag if there.get(grouping, trace.name) is None else ""


def columns(trace: Trace, grouping: str = "op") -> tuple[TableColumn, ...]:
    """The columns that this trace can fill under a grouping."""
    if grouping == "kernel":
        return _columns_of_kernels(trace)
    chosen = list(_COLUMNS_OF_OPS if grouping in ("module", "thread") else _COLUMNS)
    if grouping == "module":
        chosen.append(_WITH_SUBMODULES)
    if np.any(trace.on_device):
        own = _DEVICE_OF_OPS[:2] if grouping == "region" else [_DEVICE]
        chosen += _DEVICE_OF_OPS if grouping in _BY_OP else own
    if trace.allocations is not None and has_memory(trace):
        chosen.append(_ALLOCATED if grouping in _BY_OP else _ALLOCATED_IN)
    elif trace.allocations is None and trace.recorded.profile_memory:
        chosen.append(_MEMORY)
    if trace.flops is not None:
        chosen.append(_FLOPS)
    if len(trace.processes) > 1 and grouping in _BY_OP:
        chosen += _OF_RANKS
    return tuple(chosen)


def _columns_of_kernels(trace: Trace) -> tuple[TableColumn, ...]:
    kernels = kernel_groups(trace)
    occupancy = (_OCCUPANCY,) if (kernels.occupancy >= 0).any() else ()
    return (*_COLUMNS_OF_KERNELS, *occupancy, *(_MOVED if kernels.groups.moved_bytes.any() else ()))


@once_a_trace
def rows(trace: Trace, grouping: str = "op", show_all: bool = False) -> OperatorRows:
    """The rows of `trace` under one of `GROUPINGS`; Python frames and runtime calls only with `show_all`."""
    by_op = grouping in _BY_OP or grouping == "kernel"
    groups = _grouped(trace, grouping, show_all)
    of_event = _with_folded(trace, groups)
    value = _values(trace, grouping, groups, of_event)
    listed = _is_listed(trace, groups, show_all) if by_op else (value["count"] > 0) | (groups.self_device_ns > 0)
    kept = np.flatnonzero(listed)
    work_ns = int(trace.duration_ns[trace.is_device_work].sum())
    number = np.full(len(groups) + 1, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    first = groups.first[kept]
    all_keys = groups.values(trace)
    keys = [all_keys[row] for row in kept.tolist()]
    texts = [_texts(trace, grouping, key, event) for key, event in zip(keys, first.tolist(), strict=True)]
    made = OperatorRows(
        grouping=grouping,
        of_event=number[of_event],
        key=keys,
        label=[label for label, _ in texts],
        detail=[detail for _, detail in texts],
        family=families(trace)[first] if by_op else np.full(len(kept), SCOPES, np.int8),
        name=trace.name[first],
        value={key: column[kept] for key, column in value.items()},
        columns=columns(trace, grouping),
        wholes={"self_ns": program_ns(trace), "self_device_ns": work_ns, "device_ns": work_ns},
    )
    return with_containers(made, SCOPES) if grouping == "module" else made


def _grouped(trace: Trace, grouping: str, show_all: bool) -> Groups:
    if grouping == "kernel":
        return kernel_groups(trace).groups
    costs = averaged_costs(trace) if show_all else op_costs(trace)
    positions = np.flatnonzero(trace.kind != DEVICE_SCOPE) if trace.on_device.any() else None
    return group(trace, *GROUPINGS[grouping].keys, costs=costs, positions=positions)


def _values(trace: Trace, grouping: str, groups: Groups, of_event: Int32) -> dict[str, Int64]:
    """The numbers of each group, by column."""
    spent = spent_by(trace, grouping, groups)
    self_bytes = groups.self_cpu_bytes + groups.self_device_bytes
    allocated = allocated_by(trace, of_event, len(groups), grouping in _BY_OP)
    return {
        "count": spent.count,
        "self_ns": spent.self_ns,
        "total_ns": spent.total_ns,
        "average_ns": spent.total_ns // np.maximum(spent.count, 1),
        "self_bytes": self_bytes,
        "allocated_bytes": self_bytes if allocated is None else allocated,
        "device_average_ns": groups.device_ns // np.maximum(groups.count, 1),
        **{column: getattr(groups, column) for column in _SUMMED},
        **(_values_of_kernels(trace) if grouping == "kernel" else {}),
        **(_values_of_ranks(trace, groups) if len(trace.processes) > 1 and grouping in _BY_OP else {}),
    }


def _values_of_ranks(trace: Trace, groups: Groups) -> dict[str, Int64]:
    spread = spread_of_events(trace, groups.of_event, op_costs(trace).self_ns, len(groups))
    ranks = np.array([*(process.rank for process in trace.processes), -1], np.int64)
    return {
        "least_ns": spread.least,
        "median_ns": spread.median,
        "most_ns": spread.most,
        "most_rank": np.where(spread.most > 0, ranks[spread.process], -1),
    }


def _values_of_kernels(trace: Trace) -> dict[str, Int64]:
    kernels = kernel_groups(trace)
    moved, time_ns = kernels.groups.moved_bytes, np.maximum(kernels.groups.device_ns, 1)
    return {
        "shortest_ns": kernels.shortest_ns,
        "longest_ns": kernels.longest_ns,
        "occupancy": np.rint(kernels.occupancy).astype(np.int64),
        "moved_bytes": moved,
        "bytes_per_s": np.rint(moved / time_ns * 1e9).astype(np.int64),
    }


def _is_listed(trace: Trace, groups: Groups, show_all: bool) -> Bool:
    """Groups of ops and kernels; of others, those that kernels belong to, such as the launch of a graph."""
    kinds = (SCOPE,) if show_all else (SCOPE, RUNTIME, PYTHON)
    listed: Bool = np.isin(trace.kind[groups.first], kinds, invert=True)
    return listed | ((groups.self_device_ns > 0) & ~trace.on_device[groups.first])


def _with_folded(trace: Trace, groups: Groups) -> Int32:
    """The group of each event; a folded event belongs to the group of its parent."""
    parent = averaged_costs(trace).parent
    folded = (groups.of_event < 0) & (parent >= 0)
    return np.where(folded, groups.of_event[parent], groups.of_event)


def _texts(trace: Trace, grouping: str, key: tuple[Any, ...], event: int) -> tuple[str, str]:
    """Label and detail of the row with this key and first event."""
    first, last = key[0], key[-1]
    if grouping == "module":
        return "(no module)" if first is None else first or "(root)", ""
    if grouping == "scope":
        return first or "(no scope)", ""
    if grouping == "region":
        if first is None:
            return "(no region)", ""
        return f"{first.region} › {first.part}" if first.part else first.region, first.lines
    if grouping == "thread":
        return trace.track_title(trace.track.item(event)), ""
    if grouping == "kernel":
        return first, _how_launched(trace, key, event)
    if grouping == "shapes":
        return first, "" if key[-2] is None else shapes_and_types_text(key[-2], last or ())
    if grouping == "types":
        return first, " ".join(filter(None, map(type_name, last or ())))
    if grouping == "line":
        caused = attribution(trace)
        return first, "" if last is None else source_location(trace, *caused.lines[caused.line[event]])
    return first, "" if key[1] == "CPU" else key[1]


def _how_launched(trace: Trace, key: tuple[Any, ...], event: int) -> str:
    """The op of a kernel, its stream, and the sizes of its grid and blocks, as far as they are known."""
    op, shape = key[2], key[-1]
    sizes = (f"{what} {'×'.join(map(str, size))}" for what, size in shape._asdict().items() if size)
    return ", ".join(filter(None, (op, trace.track_title(trace.track.item(event)), *sizes)))
