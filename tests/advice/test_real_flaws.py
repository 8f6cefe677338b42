"""Rules about devices on recordings that nobody here made: small flaws in them, and flaws that are put into them."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_traces import plain_events, trace_path

import mtprof_nb as mtp
from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import RULES
from mtprof_nb.advice.rules.devices import made_on_host
from mtprof_nb.model.trace import Trace


def _trace(name: str) -> Trace:
    return mtp.load(trace_path(name)).trace


def _found(rule: str, trace: Trace) -> Finding:
    """The finding of a rule, however little of the time it is about."""
    finding = RULES[rule](trace)
    assert finding is not None
    return finding


def test_kernels_that_convert_layouts_are_counted_as_they_stand_in_the_file() -> None:
    kernels = [event for event in plain_events("a100_ddp_rank0") if "ToN" in event["name"]]
    finding = _found("layout_conversions", _trace("a100_ddp_rank0"))

    assert finding.evidence.startswith(f"{len(kernels)} kernels that convert between NCHW and NHWC take 15.1 ms of ")
    assert finding.at_most_ns == pytest.approx(sum(event["dur"] for event in kernels) * 1_000, rel=0.001)


def test_products_in_full_float32_count_where_none_uses_tf32() -> None:
    assert _found("full_precision_products", _trace("multi_stream_sync")).at_most_ns == 369_000
    # These allow TF32, and yet the library chose full float32 for some shapes.
    assert [RULES["full_precision_products"](_trace(name)) for name in ("a100_before", "a100_ddp_rank0")] == [None] * 2


def test_a_program_whose_products_are_all_made_to_use_full_float32_gets_a_finding() -> None:
    trace = _trace("a100_before")
    names = tuple("ampere_sgemm_128x64_nn" if "tensorop_s1688gemm" in name else name for name in trace.names)

    found = {finding.rule: finding for finding in advise(replace(trace, names=names))}

    assert found["full_precision_products"].share > 0.1
    assert "full_precision_products" not in {finding.rule for finding in advise(trace)}


def test_allocations_of_the_first_half_are_a_finding_if_they_are_moved_to_the_second() -> None:
    trace = _trace("rtx2080ti_resnet")
    is_call = trace.where_name(lambda name: name in ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaMallocHost"))
    rows = np.flatnonzero(is_call)
    half_ns = (trace.ended_ns - trace.began_ns) // 2
    moved = replace(trace, start_ns=np.where(is_call, trace.start_ns + half_ns, trace.start_ns)).sorted()

    finding = _found("device_allocations", moved)

    assert RULES["device_allocations"](trace) is None
    assert finding.at_most_ns == pytest.approx(int(trace.duration_ns[rows].sum()), rel=0.01)
    assert "device_allocations" in {one.rule for one in advise(moved)}


def test_tensors_made_on_the_host_are_seen_though_there_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = _trace("mi250_toy")
    assert RULES["made_on_host"](trace) is None

    monkeypatch.setattr(made_on_host, "_LEAST_TENSORS", 2)

    assert _found("made_on_host", trace).evidence.startswith("2 tensors: making and moving them takes ")


def _rewritten(name: str, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The file of a recording after `change` of each event."""
    with gzip.open(trace_path(name)) as file:
        document = json.load(file)
    for event in document["traceEvents"]:
        change(event)
    path = folder / f"{name}.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump(document, file)
    return path


def _wait_longer(event: dict[str, Any]) -> None:
    """Let a collective begin 80 ms earlier, and end when it did."""
    if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
        event["ts"] -= 80_000
        event["dur"] += 80_000


def test_the_rank_is_named_for_which_another_is_made_to_wait(tmp_path: Path) -> None:
    paths = [trace_path("ranks_rank0"), trace_path("ranks_rank1")]
    waiting = _rewritten("ranks_rank0", tmp_path, _wait_longer)

    (finding,) = mtp.load([waiting, paths[1]]).advice()

    assert (finding.rule, finding.title) == ("slowest_rank", "The other ranks wait for rank 1")
    assert list(mtp.load(paths).advice()) == []
