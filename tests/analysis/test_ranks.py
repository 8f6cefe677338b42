"""Ranks made by hand: how each divides its time, who waits for whom, and which line is the reason."""

from dataclasses import replace

import numpy as np
import pytest
from rank_traces import MS, gloo, of_rank, op, straggling
from traces import event

from mtprof_nb.advice.advising import advise
from mtprof_nb.analysis.ranks.call_groups import collective_calls
from mtprof_nb.analysis.ranks.matched_calls import matched_calls
from mtprof_nb.analysis.ranks.rank_figures import rank_figures
from mtprof_nb.analysis.ranks.rank_lines import spread_of_events, spread_of_lines
from mtprof_nb.analysis.ranks.ranked_processes import trace_of_rank
from mtprof_nb.analysis.ranks.stragglers import straggler
from mtprof_nb.analysis.steps.step_times import step_matrix
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.common_terms import moved_clock
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import OP, Collective, OutsideOps, SourceLine, Trace, Unrecorded
from mtprof_nb.recording import Recording
from mtprof_nb.tables.rank_table import rank_sentence


@pytest.fixture
def two() -> Trace:
    """Rank 1 computes 30 ms before the collective, rank 0 only 10 ms; the exchange takes 5 ms."""
    first = of_rank(0, [op(0, 10), gloo(10, 35), op(40, 60)], own_ns=2 * MS)
    second = of_rank(1, [op(0, 30), gloo(30, 35), op(40, 60)])
    return merge([first, second])


def test_the_parts_of_a_rank_sum_up_to_its_wall_time(two: Trace) -> None:
    rows = rank_figures(two)
    parts = [
        (row.wall_ns, row.computing_ns, row.waiting_ns, row.communicating_ns, row.outside_ns, row.profiler_ns)
        for row in rows
    ]
    assert parts == [(100 * MS, 30 * MS, 20 * MS, 5 * MS, 43 * MS, 2 * MS), (100 * MS, 50 * MS, 0, 5 * MS, 45 * MS, 0)]
    assert [row.in_ops_ns for row in rows] == [30 * MS, 50 * MS]
    assert [(row.title, row.host, row.pid) for row in rows] == [("rank 0", "host", 100), ("rank 1", "host", 101)]


def test_waiting_behind_an_op_is_computing() -> None:
    first = of_rank(0, [op(0, 10), gloo(10, 35), op(12, 20)])
    second = of_rank(1, [op(0, 30), gloo(30, 35)])
    row = rank_figures(merge([first, second]))[0]
    assert (row.computing_ns, row.waiting_ns, row.communicating_ns) == (18 * MS, 12 * MS, 5 * MS)


def test_posting_a_collective_is_not_computing() -> None:
    rows = [op(0, 10), op(10, 14, "c10d::allreduce_"), gloo(12, 20)]
    row = rank_figures(of_rank(0, rows))[0]
    assert (row.computing_ns, row.communicating_ns) == (10 * MS, 8 * MS)


def test_a_process_with_a_device_computes_there() -> None:
    def rank(number: int, starts: float) -> Trace:
        kernels = [
            event("gemm", 0, 40 * MS, kind="kernel", device="CUDA", thread=7),
            event(
                "ncclKernel_AllReduce",
                round(starts * MS),
                60 * MS,
                kind="collective",
                device="CUDA",
                thread=8,
                collective=Collective("allreduce", "0", 2, "float", 250, 250),
                moved_bytes=1000,
            ),
        ]
        return of_rank(number, [op(0, 90), *kernels])

    both = merge([rank(0, 30), rank(1, 50)])
    rows = rank_figures(both)
    # 10 of rank 0's 20 ms of waiting are behind its kernel.
    assert [(row.computing_ns, row.waiting_ns, row.communicating_ns) for row in rows] == [
        (40 * MS, 10 * MS, 10 * MS),
        (40 * MS, 0, 10 * MS),
    ]
    (calls,) = collective_calls(both)
    assert (calls.name, calls.nbytes, calls.calls, calls.processes, calls.wait_ns) == ("allreduce", 1000, 1, 2, 20 * MS)
    assert calls.waits_ns == {"rank 0": 20 * MS, "rank 1": 0}
    assert calls.gb_per_s == 1000 / (10 * MS)


def test_who_came_last_and_how_long_the_others_waited(two: Trace) -> None:
    calls = matched_calls(two)
    assert (calls.wait_ns.tolist(), calls.last.tolist(), calls.exchange_ns.tolist()) == ([[20 * MS, 0]], [1], [5 * MS])
    assert [(row.collectives, row.came_last, row.waited_for_ns) for row in rank_figures(two)] == [
        (1, 0, 0),
        (1, 1, 20 * MS),
    ]


def test_the_n_th_call_of_a_name_is_the_same_one_on_all_ranks() -> None:
    first = of_rank(0, [gloo(0, 10), gloo(20, 22, "broadcast"), gloo(30, 40)])
    second = of_rank(1, [gloo(5, 10), gloo(20, 28, "broadcast"), gloo(30, 40)])
    calls = matched_calls(merge([first, second]))
    assert [key.name for key in calls.keys] == ["all_reduce", "broadcast", "all_reduce"]
    # The sender of a broadcast waits for nobody: who came last is not known.
    assert calls.wait_ns.tolist() == [[5 * MS, 0], [0, 0], [0, 0]]
    assert calls.last.tolist() == [1, -1, -1]


def test_a_recording_that_began_later_lacks_the_first_calls() -> None:
    first = of_rank(0, [gloo(start, start + 6) for start in (10, 30, 50, 70)])
    second = of_rank(1, [gloo(start + 5, start + 6) for start in (50, 70)], began_ns=40 * MS)
    calls = matched_calls(merge([first, second]))
    assert calls.is_there.sum(axis=1).tolist() == [1, 1, 2, 2]
    assert calls.wait_ns[:, 0].tolist() == [0, 0, 5 * MS, 5 * MS]
    # Rank 1 was not recorded yet as the first meeting of both was prepared.
    assert calls.blamed_ns[:, 0].tolist() == [0, 0, 0, 5 * MS]


def test_calls_that_were_never_under_way_at_one_time_are_not_one() -> None:
    first = of_rank(0, [gloo(0, 10), gloo(50, 60)])
    second = of_rank(1, [gloo(20, 30), gloo(52, 60)])
    calls = matched_calls(merge([first, second]))
    assert (calls.is_meeting.tolist(), calls.last.tolist()) == ([False, True], [-1, 1])


def test_a_busy_host_may_end_a_long_call_later() -> None:
    first = of_rank(0, [gloo(0, 90), gloo(91, 92)])
    second = of_rank(1, [gloo(59, 60), gloo(91, 92)])
    assert matched_calls(merge([first, second])).is_meeting.tolist() == [True, True]
    second = of_rank(1, [gloo(30, 40), gloo(91, 92)])
    assert matched_calls(merge([first, second])).is_meeting.tolist() == [False, True]


def test_messages_between_two_ranks_are_no_collectives() -> None:
    assert len(matched_calls(merge([of_rank(0, [gloo(0, 9, "send")]), of_rank(1, [gloo(0, 9, "recv")])]))) == 0


def test_the_rank_that_others_wait_for_is_named_with_the_evidence() -> None:
    found = straggler(merge(straggling(4, slow=2)))
    assert found is not None
    assert (found.rank, found.came_last, found.collectives, found.waited_for_ns) == (2, 10, 10, 30 * MS)
    assert found.slower is not None
    assert found.slower.line == SourceLine("train.py", 4)
    assert str(found) == (
        "rank 2 came last in 10 of 10 all-reduces; the others waited 30.0 ms for it; "
        "train.py:4 takes 30.0 ms there, and next to nothing elsewhere"
    )


def test_advice_for_several_ranks_names_the_one_that_others_wait_for() -> None:
    (finding,) = advise(merge(straggling(4, slow=2)))
    assert (finding.rule, finding.line, finding.at_most_ns) == ("slowest_rank", SourceLine("train.py", 4), 30 * MS)
    assert finding.title == "The other ranks wait for rank 2"
    assert finding.evidence.startswith("Rank 2 came last in 10 of 10 all-reduces; ")
    in_turn = [of_rank(0, [gloo(0, 5), gloo(20, 30)]), of_rank(1, [gloo(4, 5), gloo(20, 30)])]
    assert advise(merge(in_turn)) == ()


def test_a_line_that_is_slower_than_elsewhere_is_named_by_its_ratio() -> None:
    outside = {SourceLine("train.py", 3): OutsideOps(36 * MS, 36 * MS)}
    parts = [
        replace(part, outside=outside if rank == 1 else {}) for rank, part in enumerate(straggling(3, slow=1, calls=10))
    ]
    found = straggler(merge(parts))
    assert found is not None
    assert str(found).endswith("train.py:3 is 1.9 × slower there")


def test_an_op_is_named_where_lines_are_not_known() -> None:
    parts = [replace(part, line=None, lines=()) for part in straggling(2, slow=0)]
    assert str(straggler(merge(parts))).endswith("aten::sort takes 30.0 ms there, and next to nothing elsewhere")


def test_the_time_outside_ops_is_named_where_neither_lines_nor_ops_explain_it() -> None:
    first = of_rank(0, [op(0, 2), *(gloo(at, at + 9) for at in range(0, 100, 10))])
    second = of_rank(1, [op(0, 2), *(gloo(at + 8, at + 9) for at in range(0, 100, 10))])
    # The first wait of 8 ms is behind the op for 2 ms, and each exchange takes 1 ms.
    assert str(straggler(merge([first, second]))).endswith("time outside ops is 8.8 × longer there")


def test_the_bytes_of_a_call_on_the_host_are_those_of_its_inputs() -> None:
    facts = {"shapes": ((10, 5), ()), "dtypes": ("float", "")}
    first = of_rank(0, [gloo(0, 10, **facts), gloo(20, 30, shapes=((4,),), dtypes=("strange",))])
    second = of_rank(1, [gloo(0, 10, **facts), gloo(20, 30)])
    assert matched_calls(merge([first, second])).nbytes.tolist() == [200, -1]


def test_ranks_that_wait_for_each_other_in_turn_have_no_straggler() -> None:
    first = of_rank(0, [gloo(at + (0 if at % 20 else 8), at + 9) for at in range(0, 100, 10)])
    second = of_rank(1, [gloo(at + (8 if at % 20 else 0), at + 9) for at in range(0, 100, 10)])
    both = merge([first, second])
    assert [row.came_last for row in rank_figures(both)] == [5, 5]
    assert straggler(both) is None
    assert rank_sentence(both) == "no single rank keeps the others waiting"


def test_one_delay_makes_no_straggler() -> None:
    first = of_rank(0, [gloo(0, 20), *(gloo(at, at + 2) for at in range(30, 90, 10))])
    second = of_rank(1, [gloo(19, 20), *(gloo(at, at + 3) for at in range(30, 90, 10))])
    assert straggler(merge([first, second])) is None


def test_a_rank_whose_recording_began_later_is_not_the_reason() -> None:
    first = of_rank(0, [op(0, 10), gloo(10, 36), gloo(50, 52)])
    second = of_rank(1, [op(25, 35), gloo(35, 36), gloo(50, 52)], began_ns=25 * MS)
    both = merge([first, second])
    assert (rank_figures(both)[0].waiting_ns, rank_figures(both)[1].waited_for_ns) == (25 * MS, 0)
    assert straggler(both) is None


def test_without_collectives_nobody_is_named() -> None:
    both = merge([of_rank(0, [op(0, 10)]), of_rank(1, [op(0, 90)])])
    assert straggler(both) is None
    assert "not known" in rank_sentence(both)
    assert rank_sentence(of_rank(0, [op(0, 10)])) == ""


def test_each_step_of_each_rank() -> None:
    first = of_rank(0, [op(0, 9, step=0), op(20, 30, step=1)])
    second = of_rank(1, [op(2, 5, step=0), op(42, 50, step=1), op(60, 70, step=2)], ended_ns=80 * MS)
    matrix = step_matrix(merge([first, second]))
    assert matrix.numbers == (0, 1, 2)
    assert matrix.duration_ns.tolist() == [[20 * MS, 40 * MS], [80 * MS, 18 * MS], [-1, 20 * MS]]


def test_one_rank_is_what_its_process_recorded() -> None:
    parts = straggling(3, slow=1, own_ns=MS, overhead_ns=3 * MS, notes=("a note",))
    parts[1] = replace(parts[1], outside={SourceLine("train.py", 3): OutsideOps(5, 5)}, notes=("another",))
    whole = Recording(merge(parts))
    for rank, part in enumerate(parts):
        assert whole.summary(rank=rank) == summary(part)
        assert whole.key_averages(rank=rank).table() == Recording(part).key_averages().table()
        assert whole.lines(rank=rank).table() == Recording(part).lines().table()
    assert whole.of_rank(2).trace.tracks == parts[2].tracks
    assert len(whole.events(rank=1)) == 30


def test_the_spread_of_a_cost_over_ranks() -> None:
    trace = merge(straggling(4, slow=2))
    row = np.where(trace.kind == OP, trace.name, -1)
    spread = spread_of_events(trace, row, trace.duration_ns, len(trace.names))
    found = {
        name: (int(spread.least[at]), int(spread.median[at]), int(spread.most[at]), int(spread.process[at]))
        for at, name in enumerate(trace.names)
    }
    assert found["aten::mm"] == (40 * MS, 40 * MS, 40 * MS, 3)
    assert found["aten::sort"] == (0, 0, 30 * MS, 2)
    assert found["gloo:all_reduce"] == (0, 0, 0, -1)
    assert spread_of_lines(trace)[SourceLine("train.py", 4)] == (0, 30 * MS, 2)


def test_a_rank_that_is_not_there_is_an_error_that_lists_those_that_are() -> None:
    whole = Recording(merge(straggling(2, slow=1)))
    with pytest.raises(ValueError, match="no rank 7 in this recording: it has 0, 1"):
        whole.lines(rank=7)
    assert trace_of_rank(whole.trace, None) is whole.trace


def test_windows_of_one_process_stay_one_process() -> None:
    windows = [of_rank(0, [op(at, at + 5)], at * MS, (at + 10) * MS, own_ns=MS) for at in (0, 50)]
    both = merge([merge(windows), of_rank(1, [op(0, 5)])])
    assert [facts.windows for facts in both.process_facts] == [
        ((0, 10 * MS), (50 * MS, 60 * MS)),
        ((0, 100 * MS),),
    ]
    assert [(row.wall_ns, row.profiler_ns) for row in rank_figures(both)] == [(20 * MS, 2 * MS), (100 * MS, 0)]


def test_a_moved_clock_moves_the_facts_of_processes(two: Trace) -> None:
    later = moved_clock(two, 7)
    assert [facts.windows for facts in later.process_facts] == [((7, 100 * MS + 7),)] * 2
    assert rank_figures(later) == rank_figures(two)


def test_a_moved_clock_moves_steps_and_times_that_were_not_recorded() -> None:
    full = Unrecorded(90, 100, "It was full.")
    rank = of_rank(0, [op(0, 5)], step_starts=((0, 0), (20, 1)), unrecorded=(full,))
    later = moved_clock(merge([rank, of_rank(1, [op(0, 5)])]), 7)

    assert later.step_starts == later.process_facts[0].step_starts == ((7, 0), (27, 1))
    assert later.unrecorded == later.process_facts[0].unrecorded == (Unrecorded(97, 107, "It was full."),)


def test_ranks_answer_as_a_table_and_as_dataframes(two: Trace) -> None:
    pytest.importorskip("pandas")
    ranks = Recording(two).ranks()
    frame = ranks.to_dataframe()
    assert frame["rank"].tolist() == [0, 1]
    assert frame["waiting_ns"].tolist() == [20 * MS, 0]
    assert ranks.collectives().to_dataframe()["wait_ns, rank 0"].tolist() == [20 * MS]
    assert ranks.steps().columns.tolist() == ["rank 0", "rank 1"]
    assert ranks[1].came_last == 1
    assert "rank 1" in ranks.table()
    assert "rank 0 20.0 ms" in ranks.collectives().table()
