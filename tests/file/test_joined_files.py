"""Many files as one recording: their processes, ranks and clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from files_to_load import names, ranks, save
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.errors import LoadError
from mtprof_nb.loading.processes_of_files import joined_files
from mtprof_nb.model.trace import Trace
from mtprof_nb.reading import rank_in_name
from mtprof_nb.recording import Recording


@pytest.mark.parametrize(
    ("file", "rank"),
    [
        ("runs/trace_rank3.json", 3),
        ("runs/rank-12.json.gz", 12),
        ("runs/Rank_0/trace.json", 0),
        ("rank1/rank2/trace.json", 2),
        ("rank1/rank4_of_rank9.json", 9),
        ("runs/trace.json", None),
        ("frank3.json", None),
    ],
)
def test_the_rank_in_a_name(file: str, rank: int | None):
    assert rank_in_name(Path(file)) == rank


def trace_of(name: str, at: int = 0, **scalars: Any) -> Trace:
    return make_trace([event(name, at + 1, at + 9)], began_ns=at, ended_ns=at + 10, **scalars)


def joined_traces(*traces: Trace, files: str = "abcdef", by_order: bool = True) -> Trace:
    return joined_files([Path(file) for file in files[: len(traces)]], traces, lambda parts: parts, by_order=by_order)


def test_two_hosts_that_gave_the_same_number_to_their_processes_are_two_ranks():
    both = joined_traces(trace_of("a", pid=5), trace_of("b", pid=5))

    assert ranks(both) == [(5, 0), (5, 1)]
    assert sorted(both.tracks[track].process for track in both.track) == [0, 1]


def test_windows_of_one_process_stay_one():
    both = joined_traces(trace_of("a", pid=5), trace_of("b", 100, pid=5))

    assert ranks(both) == [(5, -1)]
    assert [names(both), set(both.track.tolist())] == [["a", "b"], {0}]


def test_windows_of_two_ranks_are_two_processes():
    parts = [trace_of(f"{rank} {at}", at, pid=5) for at in (0, 100) for rank in (0, 1)]
    whole = joined_files([Path(f"rank{number % 2}_{number}.json") for number in range(4)], parts, list, by_order=True)

    assert ranks(whole) == [(5, 0), (5, 1)]
    of_process = {0: [], 1: []}
    for name, track in zip(names(whole), whole.track, strict=True):
        of_process[whole.tracks[track].process].append(name)
    assert of_process == {0: ["0 0", "0 100"], 1: ["1 0", "1 100"]}


def test_ranks_of_the_files_themselves_come_before_names_and_order():
    whole = joined_files(
        [Path("rank7.json"), Path("rank8.json"), Path("x.json"), Path("y.json")],
        [trace_of("a", pid=1, rank=1), trace_of("b", pid=2), trace_of("c", pid=3), trace_of("d", pid=4)],
        list,
        by_order=True,
    )

    assert ranks(whole) == [(1, 1), (2, 8), (3, 0), (4, 2)]


def test_own_recordings_outside_of_a_job_get_no_rank():
    both = joined_traces(trace_of("a", pid=1), trace_of("b", pid=2), by_order=False)

    assert ranks(both) == [(1, -1), (2, -1)]


def test_one_process_twice_at_the_same_time_is_refused():
    with pytest.raises(LoadError, match=r"'a' and 'b' hold the same process \(rank 1\) at the same time: load one"):
        joined_traces(trace_of("a", pid=1, rank=1), trace_of("a", pid=1, rank=1))
    with pytest.raises(LoadError, match="'a' and 'b' hold the same process"):
        joined_traces(trace_of("a", pid=1), trace_of("a", pid=1), by_order=False)


MINUTE = 60_000_000_000


def test_profiles_of_a_month_are_not_one_recording(tmp_path):
    for day in range(3):
        save(tmp_path / f"day{day}.mtp", at=day * 1440 * MINUTE, pid=100 + day)

    with pytest.raises(
        LoadError,
        match=r"not the processes of one job: '.*day1\.mtp' begins 24 hours after '.*day0\.mtp'. Load each file",
    ):
        mtp.load(tmp_path)


@pytest.mark.parametrize(
    ("processes", "is_one_job"),
    [
        (({"pid": 1}, {"pid": 2, "at": 50_000_000_000}), True),
        (({"pid": 1}, {"pid": 2, "at": 2 * MINUTE}), False),
        (({"pid": 1}, {"pid": 1, "at": 2 * MINUTE}), True),
        (({"pid": 1, "rank": 0}, {"pid": 2, "rank": 1, "at": 2 * MINUTE}), True),
        (({"pid": 1, "rank": 0}, {"pid": 2, "rank": 0, "at": 2 * MINUTE}), False),
        (({"pid": 1}, {"pid": 2, "at": 3 * MINUTE}, {"pid": 1, "at": 5 * MINUTE}), True),
    ],
)
def test_processes_of_one_job_ran_at_the_same_time_or_have_ranks(processes, is_one_job, tmp_path):
    for number, process in enumerate(processes):
        save(tmp_path / f"{number}.mtp", **process)

    if is_one_job:
        assert len(mtp.load(tmp_path).trace) == len(processes)
    else:
        with pytest.raises(LoadError, match="not the processes of one job"):
            mtp.load(tmp_path)


def test_ranks_in_the_names_of_files_make_them_one_job(tmp_path):
    save(tmp_path / "rank0.mtp", pid=1)
    save(tmp_path / "rank1.mtp", pid=2, at=5 * MINUTE)

    assert ranks(mtp.load(tmp_path).trace) == [(1, 0), (2, 1)]


def test_chrome_traces_far_apart_are_told():
    with_pids = trace_of("a", pid=5), trace_of("b", 300 * MINUTE, pid=6)
    both = joined_files([Path("a.json"), Path("b.json")], with_pids, list, by_order=True)

    assert ranks(both) == [(5, 0), (6, 1)]
    assert both.notes == (
        "'b.json' begins 5 hours after 'a.json': they may be of different jobs, or their clocks differ. "
        "Ranks are the order of the files.",
    )


def test_windows_that_touch_are_one_process():
    both = joined_traces(trace_of("a", pid=5), trace_of("b", 8, pid=5), by_order=False)

    assert (ranks(both), names(both)) == ([(5, -1)], ["a", "b"])


def test_clocks_are_aligned_between_processes_once_their_windows_are_together():
    seen: list[list[int]] = []

    def align(parts: Sequence[Trace]) -> list[Trace]:
        seen.append([len(part) for part in parts])
        return [replace(part, notes=("aligned",)) for part in parts]

    whole = joined_files(
        [Path("a"), Path("b"), Path("c")],
        [trace_of("a", pid=1), trace_of("b", 100, pid=1), trace_of("c", pid=2)],
        align,
        by_order=False,
    )

    assert (seen, whole.notes) == ([[2, 1]], ("aligned",))


def test_processes_of_one_host_have_one_clock():
    def align(parts: Sequence[Trace]) -> list[Trace]:
        raise AssertionError(parts)

    both = joined_files(
        [Path("a"), Path("b")], [trace_of("a", pid=1, host="x"), trace_of("b", pid=2, host="x")], align, by_order=False
    )

    assert names(both) == ["a", "b"]


def test_two_hosts_are_aligned_on_their_collectives(tmp_path):
    for rank, late in ((0, 0), (1, 7_000_000)):
        ends = [late + 100_000 * number for number in (1, 2, 3)]
        rows = [event("gloo:all_reduce", end - 10_000 * (rank + 1), end, kind="scope") for end in ends]
        Recording(make_trace(rows, pid=1, rank=rank, host=f"node{rank}")).save(tmp_path / f"{rank}.mtp")
    trace = mtp.load(tmp_path).trace

    assert sorted(trace.end_ns.tolist()) == [100_000, 100_000, 200_000, 200_000, 300_000, 300_000]
    assert "1 of 2 clocks moved: the ends of 3 collectives" in trace.notes[0]
