"""Findings about numbers of threads, on hand-made traces and with a machine that is only said to be larger."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.advice.advising import advise
from mtprof_nb.capture.machine import thread_counts
from mtprof_nb.model.trace import Trace
from mtprof_nb.model.tracks import THREADS

MS = 1_000_000
LINE = ("cell.py", 2)


def _trace(
    threads: int, cores: int = 8, load: float = 0.5, length: int = 10, source: str = "", **scalars: Any
) -> Trace:
    """Five products of so many milliseconds, and 50 ms of other work."""
    counts = {"threads": threads, "interop_threads": 4, "processors": cores, "cores": cores, "load": load}
    rows = [
        event("aten::mm", at * length * MS, (at + 1) * length * MS, line=LINE, thread=1 + at % scalars.get("tracks", 1))
        for at in range(5)
    ]
    rows += [event("aten::sort", 5 * length * MS, (5 * length + 50) * MS)]
    scalars.pop("tracks", None)
    facts = {"metadata": {THREADS: json.dumps(counts)}, "sources": {"cell.py": source}, **scalars}
    return make_trace(rows, **facts)


def _short(threads: int, count: int = 60) -> Trace:
    """Products of half a millisecond, in a hundred milliseconds."""
    rows = [event("aten::mm", at * MS, at * MS + MS // 2, line=LINE) for at in range(count)]
    return replace(make_trace(rows, ended_ns=100 * MS), processes=_trace(threads).processes)


def test_large_products_with_fewer_threads_than_free_cores() -> None:
    (finding,) = advise(_trace(2))

    assert finding.rule == "too_few_threads"
    assert finding.at_most_ns == 50 * MS * 6 // 8
    assert finding.line == LINE
    assert finding.evidence == (
        "5 products of 1 ms or more take 50.0 ms of 100 ms, with 2 threads; the process may use 8 cores, "
        "6 of them free."
    )
    assert finding.fix == "torch.set_num_threads(8)"


def test_busy_cores_are_not_free() -> None:
    (finding,) = advise(_trace(2, load=5.5))

    assert finding.fix == "torch.set_num_threads(4)"
    assert advise(_trace(2, load=7.5)) == ()
    assert advise(_trace(2, load=-1)) == ()


def test_no_finding_where_the_other_cores_may_have_work_or_the_number_was_chosen() -> None:
    assert advise(_trace(8)) == ()
    assert advise(_trace(2, length=9)) == ()
    assert advise(_trace(2, rank=0)) == ()
    assert advise(_trace(2, tracks=2)) == ()
    assert advise(_trace(2, source="torch.set_num_threads(2)")) == ()
    assert advise(_trace(2, metadata={})) == ()
    assert advise(_trace(2, metadata={THREADS: '{"threads": "2"}'})) == ()


def test_products_with_twice_as_many_threads_as_processors() -> None:
    (finding,) = advise(_short(16))

    assert finding.rule == "too_many_threads"
    assert finding.at_most_ns == 30 * MS
    assert finding.evidence == (
        "16 threads share 8 processors, and wait for each other; 60 products of under 1 ms take 30.0 ms of 100 ms."
    )
    assert advise(_short(15)) == ()
    assert advise(_short(16, count=59)) == ()
    assert advise(_trace(16)) == ()


def test_devices_have_no_use_for_threads() -> None:
    kernel = event("gemm", 0, MS, kind="kernel", device="CUDA", thread=7)
    with_device = make_trace([event("aten::mm", 0, 50 * MS), kernel])

    assert advise(replace(with_device, processes=_trace(2).processes)) == ()


@pytest.mark.parametrize(("cores", "load", "expected"), [(8, 0.0, "too_few_threads"), (8, 8.0, None), (1, 0.0, None)])
def test_a_recording_knows_threads_and_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, load: float, expected: str | None
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(thread_counts, "usable_cores", lambda: cores)
    monkeypatch.setattr(thread_counts, "usable_processors", lambda: cores)
    monkeypatch.setattr(thread_counts.os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    x = torch.randn(1_500, 1_500)

    with mtp.profile() as prof:
        for _ in range(2):
            y = x @ x
    prof.save(tmp_path / "run.mtp")
    prof.export_chrome_trace(tmp_path / "run.json")

    assert y.shape == x.shape
    for recording in (prof, mtp.load(tmp_path / "run.mtp"), mtp.load(tmp_path / "run.json")):
        assert [one.rule for one in recording.advice() if "threads" in one.rule] == ([expected] if expected else [])


def test_a_program_that_changes_the_number_of_threads_has_none() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        with mtp.profile() as prof:
            torch.set_num_threads(before + 1)
    finally:
        torch.set_num_threads(before)

    assert THREADS not in prof.trace.metadata
