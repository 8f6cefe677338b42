"""Keys that rows can be sorted by: torch's names, and the titles of the panel's columns."""

from __future__ import annotations

from collections.abc import Sequence

_ALIASES = {"cpu_time_avg": "cpu_time", "device_time_avg": "device_time", "self_cpu_time": "self_cpu_time_total"}
#: torch's sort keys, and the column of the operators table that each means.
TORCH_KEYS = {
    "self_cpu_time_total": "self_ns",
    "cpu_time_total": "total_ns",
    "cpu_time": "average_ns",
    "count": "count",
    "self_device_time_total": "self_device_ns",
    "device_time_total": "device_ns",
    "self_cpu_memory_usage": "self_cpu_bytes",
    "cpu_memory_usage": "cpu_bytes",
    "self_device_memory_usage": "self_device_bytes",
    "device_memory_usage": "device_bytes",
    "flops": "flops",
    "key": "label",
}
#: Titles of the panel's columns: torch's key for the text table, and the column of the operators table.
TITLES = {
    "self": ("self_cpu_time_total", "self_ns"),
    "total": ("cpu_time_total", "total_ns"),
    "average": ("cpu_time", "average_ns"),
    "calls": ("count", "count"),
    "memory": ("cpu_memory_usage", "allocated_bytes"),
    "name": ("key", "label"),
}
#: Keys that both the panel and the text table can be sorted by.
SORT_KEYS = (*TITLES, *TORCH_KEYS)


def sort_column(sort: str | None) -> str:
    """The column of the operators table that a key, or a column, names; `AttributeError` where it is unknown."""
    if sort is None:
        return "self_ns"
    keys = TORCH_KEYS | {title: column for title, (_, column) in TITLES.items()}
    known = keys | {column: column for column in keys.values()}
    return known[sort_attribute(sort, tuple(known))]


def sort_attribute(sort_by: str, attributes: Sequence[str]) -> str:
    """The row attribute that a sort key means; `AttributeError` with the known keys for an unknown one."""
    by_device = sort_by
    for device in ("cuda", "xpu", "privateuse1", "npu"):
        by_device = by_device.replace(device, "device")
    for name in (sort_by, by_device):
        attribute = _ALIASES.get(name, name)
        if attribute in attributes:
            return attribute
    known = ", ".join(sorted({*attributes, *_ALIASES}))
    msg = f"'FunctionEventAvg' object has no attribute {sort_by!r}: sort by one of {known}"
    raise AttributeError(msg)
