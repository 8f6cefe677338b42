"""Recordings from real devices, against their files read plainly, and against the tables of other tools."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest
from real_traces import NAMES, plain_events, table, trace_path

from mtprof_nb.model.trace import COLLECTIVE, KERNEL, KINDS, OP, Trace
from mtprof_nb.reading import read

#: All but the largest of each dialect, which take seconds to read plainly.
KINETO = [name for name in NAMES if name not in ("a100_before", "rtx2080ti_resnet", "mi300_timesformer")]
KINDS_OF_CATEGORIES = {
    "cpu_op": "op",
    "user_annotation": "scope",
    "python_function": "python",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "set",
    "cuda_sync": "sync",
    "gpu_user_annotation": "device_scope",
}
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
Sums = dict[Any, tuple[int, int]]


@cache
def loaded(name: str) -> Trace:
    return read(trace_path(name))


def sums(pairs: Iterable[tuple[Any, int]]) -> Sums:
    """Count and time of each key."""
    found: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for key, ns in pairs:
        found[key][0] += 1
        found[key][1] += ns
    return {key: (count, ns) for key, (count, ns) in found.items()}


def names(trace: Trace, rows: Iterable[int]) -> list[str]:
    return [trace.names[trace.name[row]] for row in rows]


def _is_asleep(event: dict[str, Any]) -> bool:
    return event["cat"] == "python_function" and (event["pid"], event["tid"]) == (0, 0)


@pytest.mark.parametrize("name", [one for one in KINETO if not one.startswith("ascend")])
def test_kinds_kernels_and_launches_are_those_of_the_file(name: str) -> None:
    spans = [one for one in plain_events(name) if one["ph"] == "X" and one["cat"] != "Trace" and not _is_asleep(one)]
    trace = loaded(name)

    kinds = [KINDS[kind].replace("collective", "kernel") for kind in trace.kind.tolist()]
    expected = sums((KINDS_OF_CATEGORIES[one["cat"]], round(one["dur"] * 1000)) for one in spans)
    assert sums(zip(kinds, trace.duration_ns.tolist(), strict=True)) == expected

    work = np.flatnonzero(trace.is_device_work).tolist()
    of_device = [one for one in spans if one["cat"] in ON_DEVICE]
    expected = sums((one["name"], round(one["dur"] * 1000)) for one in of_device)
    assert sums(zip(names(trace, work), trace.duration_ns[work].tolist(), strict=True)) == expected

    calls = {
        one["args"]["correlation"]: one for one in reversed(spans) if one["cat"] in ("cuda_runtime", "cuda_driver")
    }
    launched = Counter((one["name"], calls.get(one["args"]["correlation"], {}).get("name")) for one in of_device)
    found = [] if trace.launch is None else [names(trace, [row])[0] if row >= 0 else None for row in trace.launch[work]]
    assert Counter(zip(names(trace, work), found, strict=True)) == launched


@pytest.mark.parametrize("name", ["h100_bert_small", "mi300_bert_small", "h100_timesformer", "mi300_timesformer"])
def test_kernels_by_op_and_stream_are_those_of_another_tool(name: str) -> None:
    trace = loaded(name)
    rows = np.flatnonzero((trace.kind == KERNEL) | (trace.kind == COLLECTIVE)).tolist()
    assert trace.launcher is not None
    streams = [trace.tracks[track].native_id for track in trace.track[rows].tolist()]
    keys = zip(names(trace, trace.launcher[rows]), names(trace, rows), streams, strict=True)
    found = sums(zip(keys, trace.duration_ns[rows].tolist(), strict=True))

    kernels = [row for row in table(name, "kernel_summary") if not row["Kernel name"].startswith(("Memset", "Memcpy"))]
    expected = {
        (row["Parent cpu_op"], row["Kernel name"], int(row["Kernel stream"])): (
            int(row["Kernel duration (µs)_count"]),
            round(float(row["Kernel duration (µs)_sum"]) * 1000),
        )
        for row in kernels
    }
    assert found == expected


@pytest.mark.parametrize("name", ["ascend_rank0", "ascend_rank1"])
def test_kernels_and_collectives_of_ascend_are_those_of_the_vendors_table(name: str) -> None:
    trace = loaded(name)
    rows = np.flatnonzero((trace.kind == KERNEL) | (trace.kind == COLLECTIVE)).tolist()
    found = sums(zip(names(trace, rows), trace.duration_ns[rows].tolist(), strict=True))

    def ns(row: dict[str, str]) -> int:
        # The vendor rounds durations of kernels, and cuts those of collectives.
        return round(float(row["Duration(us)"]) * 1000)

    cut = {name: (count, total // 1000 * 1000) for name, (count, total) in found.items() if name.startswith("hcom")}
    details = table(name, "kernel_details")
    kernels = sums((row["Name"], ns(row)) for row in details if not row["Name"].startswith("hcom"))
    collectives = sums((row["Name"], ns(row) // 1000 * 1000) for row in details if row["Name"].startswith("hcom"))
    assert {one: found[one] for one in found if one not in cut} == kernels
    assert cut == collectives
    starts = {row["Start Time(us)"].strip() for row in details}
    kernel_starts = trace.start_ns[trace.kind == KERNEL].tolist()
    assert {f"{at // 1000}.{at % 1000:03d}" for at in kernel_starts} <= starts


def test_forward_ops_are_those_of_the_flows_of_the_file() -> None:
    trace, base_ns = loaded("a100_ddp_rank0"), 1_711_964_646_000_000_000
    flows = [one for one in plain_events("a100_ddp_rank0") if one.get("cat") == "fwdbwd"]
    begins = {one["id"]: one for one in flows if one["ph"] == "s"}
    native = np.array([track.native_id for track in trace.tracks])[trace.track]
    rows = np.flatnonzero((trace.forward >= 0) & (trace.kind == OP))
    places = list(zip(native.tolist(), (trace.start_ns - base_ns).tolist(), strict=True))
    linked = {(places[row], places[forward]) for row, forward in zip(rows, trace.forward[rows], strict=True)}

    def place(flow: dict[str, Any]) -> tuple[int, int]:
        return flow["tid"], round(Decimal(repr(flow["ts"])) * 1000)

    ends = [one for one in flows if one["ph"] == "f"]
    assert len(ends) == 543
    assert {(place(end), place(begins[end["id"]])) for end in ends} <= linked
