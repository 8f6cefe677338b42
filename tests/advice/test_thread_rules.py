"""Findings about numbers of threads, on hand-made traces and with a machine that is only said to be larger."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from traces import Row, event, make_trace

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
    set_by = scalars.pop("set_by", "")
    counts = {"threads": threads, "processors": cores, "cores": cores, "load": load, "set_by": set_by}
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
    return replace(make_trace(_rows_of_short(count), ended_ns=100 * MS), processes=_trace(threads).processes)


def _rows_of_short(count: int) -> list[Row]:
    return [event("aten::mm", at * MS, at * MS + MS // 2, line=LINE) for at in range(count)]


def test_large_products_with_fewer_threads_than_free_cores() -> None:
    (finding,) = advise(_trace(2))

    assert finding.rule == "too_few_threads"
    assert (finding.found_ns, finding.at_most_ns) == (50 * MS * 6 // 8, 100 * MS * 6 // 8)  # other ops may gain, too
    assert finding.line == LINE
    assert finding.evidence == (
        "5 products of 1 ms or more take 50.0 ms of 100 ms, with 2 threads; the process may use 8 cores, "
        "6 of them free."
    )
    assert finding.fix == "torch.set_num_threads(8)"


def test_the_variable_that_sets_the_number_of_threads_is_named() -> None:
    (finding,) = advise(_trace(2, set_by="OMP_NUM_THREADS"))

    assert finding.evidence.endswith("6 of them free. The environment variable OMP_NUM_THREADS sets their number.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"load": float("inf")},
        {"load": float("nan")},
        {"threads": -7},
        {"threads": 0},
        {"cores": 1 << 17},
        {"cores": "8"},
    ],
    ids=str,
)
def test_numbers_that_no_machine_has_are_none(wrong: dict[str, Any]) -> None:
    counts = {"threads": 2, "processors": 8, "cores": 8, "load": 0.5, **wrong}

    assert advise(_trace(2, metadata={THREADS: json.dumps(counts)})) == ()


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
    both = replace(
        make_trace([*_rows_of_short(60), event("aten::add", 70 * MS, 100 * MS)]), processes=_trace(16).processes
    )
    assert [(one.found_ns, one.at_most_ns) for one in advise(both)] == [(30 * MS, 60 * MS)]
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


@pytest.mark.parametrize("when", ["start", "stop"])
@pytest.mark.parametrize("lacking", ["os.getloadavg", "torch.get_num_threads"])
def test_a_system_that_does_not_tell_disturbs_no_recording(
    monkeypatch: pytest.MonkeyPatch, when: str, lacking: str
) -> None:
    torch = pytest.importorskip("torch")

    def fail() -> None:
        raise OSError("not on this system")

    module, _, name = lacking.partition(".")
    patched = {"os": thread_counts.os, "torch": torch}[module]
    if when == "start":
        monkeypatch.setattr(patched, name, fail)
    with mtp.profile() as prof:
        torch.ones(2)
        monkeypatch.setattr(patched, name, fail)

    assert "aten::ones" in [event.name for event in prof.events()]
    assert (THREADS in prof.trace.metadata) == (when == "stop" and module == "os")
