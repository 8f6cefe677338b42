"""Ranks that nobody here recorded: two GPUs of a job of 128, and two NPUs."""

import pytest
from real_traces import trace_path

import mtprof_nb as mtp


def test_two_gpus_of_a_larger_job_meet_in_the_calls_that_both_have() -> None:
    ranks = mtp.load([trace_path("ranks_rank0"), trace_path("ranks_rank1")]).ranks()
    assert [(row.rank, row.collectives) for row in ranks] == [(0, 4), (1, 4)]
    # Numbers read from the files: rank 1's third common call began 22 ms after rank 0's.
    assert [row.came_last for row in ranks] == [1, 3]
    assert [row.waited_for_ns for row in ranks] == [248_000, 26_605_000]
    # Less than 5 % of 3.4 s.
    assert ranks.straggler is None
    parts = [(row.computing_ns, row.communicating_ns, row.waiting_ns, row.outside_ns, row.profiler_ns) for row in ranks]
    assert [sum(part) for part in parts] == [row.wall_ns for row in ranks]


def test_two_npus_wait_once_because_one_recording_began_later() -> None:
    recording = mtp.load([trace_path("ascend_rank0"), trace_path("ascend_rank1")])
    ranks = recording.ranks()
    calls = ranks.collectives()
    assert [(call.name, call.nbytes, call.calls, call.processes) for call in calls] == [
        ("allreduce", nbytes, 1, 2) for nbytes in (16_388_000, 9_878_784, 151_011_328, 67_125_248)
    ]
    assert calls[0].waits_ns == {"rank 0": 16_910_717, "rank 1": 0}
    assert calls[2].gb_per_s == pytest.approx(151_011_328 / 2_489_530)
    # The recording of rank 1 began 16.1 ms after that of rank 0.
    assert ranks[1].waited_for_ns == 858_605
    assert ranks.straggler is None
    assert recording.summary(rank=1).ops < recording.summary().ops
