"""Merged traces: nothing lost, every reference follows."""

from dataclasses import replace

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.merge import merge
from mtprof_nb.model.schema import schema_of
from mtprof_nb.model.trace import Allocations, Frame, OutsideOps, Recorded, SourceLine, StackInterner, Trace, Track


def names(trace):
    return [trace.names[name] for name in trace.name]


def test_events_of_two_traces_come_in_order_of_start_with_their_references():
    first = make_trace(
        [
            event("mm", 10, 20, stack=[("a.py", 1, "f"), ("a.py", 9, "main")], shapes=((2, 2),)),
            event("mmBackward", 50, 60, phase="backward", forward=0, stack=[("a.py", 1, "f"), ("a.py", 9, "main")]),
        ],
        allocations=[{"time_ns": 55, "nbytes": 8, "event": 1}],
    )
    second = make_trace(
        [
            event("add", 5, 8, thread=2, stack=[("b.py", 3, "g"), ("a.py", 9, "main")]),
            event("addBackward", 70, 90, thread=2, phase="backward", forward=0, device="NPU"),
        ],
        allocations=[{"time_ns": 75, "nbytes": -8, "event": 1, "thread": 2}],
    )

    both = merge([first, second])

    assert names(both) == ["add", "mm", "mmBackward", "addBackward"]
    assert both.forward.tolist() == [-1, -1, 1, 0]
    assert [both.devices[device] for device in both.device] == ["CPU", "CPU", "CPU", "NPU"]
    assert [both.tracks[thread].native_id for thread in both.track] == [2, 1, 1, 2]
    assert both.allocations.event.tolist() == [2, 3]
    assert [both.tracks[thread].native_id for thread in both.allocations.track] == [1, 2]
    assert both.correlation_id.tolist() == [1, 2, 3, 4]
    assert both.shape.tolist() == [-1, 0, -1, -1]
    assert both.shapes == (((2, 2),),)
    assert [str(frame) for frame in both.stacks.stack(both.stack[1])] == ["a.py:1:f", "a.py:9:main"]
    assert both.stack[1] == both.stack[2], "an equal stack is one node"
    assert [str(frame) for frame in both.stacks.stack(both.stack[0])] == ["b.py:3:g", "a.py:9:main"]
    assert both.stack[3] == -1
    assert (both.began_ns, both.ended_ns) == (5, 90)


def test_a_trace_merged_with_empty_ones_is_itself():
    trace = make_trace([event("mm", 0, 1)])
    assert merge([make_trace([]), trace, make_trace([])]) is trace


def test_what_an_empty_part_dropped_is_dropped_from_all():
    trace = make_trace([event("mm", 0, 1)], dropped=2)
    both = merge([trace, make_trace([], dropped=3, dropped_exactly=False)])
    assert (names(both), both.dropped, both.dropped_exactly) == (["mm"], 5, False)


def test_a_window_without_events_counts_with_the_time_that_it_took():
    trace = make_trace([event("mm", 10, 20)], pid=7, windows=((10, 20),), own_ns=1, overhead_ns=3)
    empty = make_trace([], pid=7, began_ns=30, ended_ns=50, windows=((30, 50),), own_ns=2, overhead_ns=4)
    for both in (merge([trace, empty]), merge([empty, trace])):
        assert (names(both), both.windows) == (["mm"], ((10, 20), (30, 50)))
        assert (both.began_ns, both.ended_ns, both.own_ns, both.overhead_ns) == (10, 50, 3, 7)
        assert (len(both.processes), summary(both).wall_ns) == (1, 30)


def test_what_any_part_recorded_is_recorded_in_either_order():
    first, second = make_trace([event("mm", 0, 1, flops=4)]), make_trace([event("mm", 5, 6, module="Net")])
    expected = Recorded(with_flops=True, with_modules=True)
    assert merge([first, second]).recorded == merge([second, first]).recorded == expected


def test_metadata_in_which_processes_disagree_names_the_process():
    def recorded(pid, rank, **metadata):
        return make_trace([event("mm", 0, 1)], pid=pid, rank=rank, metadata=metadata)

    ranks = merge([recorded(1, 0, seed="1", lr="3"), recorded(2, 1, seed="2", lr="3"), recorded(3, 2, only="4")])
    assert dict(ranks.metadata) == {"rank 0, seed": "1", "lr": "3", "rank 1, seed": "2", "only": "4"}
    restarted = merge([recorded(1, 0, seed="1"), recorded(2, 0, seed="2")])
    assert dict(restarted.metadata) == {"process 0, seed": "1", "process 1, seed": "2"}


def test_the_time_that_recording_added_is_known_where_every_part_knows_it():
    first, second = make_trace([event("mm", 0, 1)], overhead_ns=10), make_trace([event("add", 2, 3)], overhead_ns=5)
    assert merge([first, second]).overhead_ns == 15
    assert merge([first, make_trace([event("add", 2, 3)])]).overhead_ns == -1


def test_records_of_an_allocator_are_joined_in_order_of_time_and_those_of_one_moment_by_part():
    def records(*moments_and_bytes):
        return make_trace(
            [event("mm", 0, 9)], [{"time_ns": moment, "nbytes": size} for moment, size in moments_and_bytes]
        ).allocations

    joined = Allocations.joined([records((1, 10), (5, 50)), records((3, 30), (5, 51))])
    assert joined.time_ns.tolist() == [1, 3, 5, 5]
    assert joined.nbytes.tolist() == [10, 30, 50, 51]
    assert joined.total.tolist() == [10, 30, 60, 81]
    assert len(Allocations.joined([])) == 0


def test_time_outside_ops_is_summed_line_by_line_where_every_part_knows_it():
    one, two, three = (SourceLine("cell", line) for line in (1, 2, 3))
    first = make_trace([event("mm", 0, 1)], outside={one: OutsideOps(10, 15), two: OutsideOps(20, 20)})
    second = make_trace([event("add", 2, 3)], outside={two: OutsideOps(5, 9, 4), three: OutsideOps(7, 7)})
    expected = {one: OutsideOps(10, 15), two: OutsideOps(25, 29, 4), three: OutsideOps(7, 7)}
    assert merge([first, second]).outside == expected
    assert merge([first, make_trace([event("add", 2, 3)])]).outside is None


def test_a_part_that_left_ops_out_leaves_them_out_of_all():
    whole, part = make_trace([event("mm", 0, 1)]), make_trace([event("add", 2, 3)], is_partial=True)
    assert (whole.has_all_ops, part.has_all_ops, merge([whole, part]).has_all_ops) == (True, False, False)


def test_two_processes_with_equal_thread_ids_keep_their_events_apart():
    first = make_trace([event("outer", 0, 100)], pid=7, host="a", metadata={"rank": "0"})
    second = make_trace([event("inner", 10, 50)], pid=7, host="b", metadata={"rank": "1"})

    both = merge([first, second])

    assert [process[:3] for process in both.processes] == [(7, -1, "a"), (7, -1, "b")]
    assert [process.metadata for process in both.processes] == [(("rank", "0"),), (("rank", "1"),)]
    assert [both.tracks[track].process for track in both.track] == [0, 1]
    assert nesting(both).parent.tolist() == [-1, -1]


def test_windows_of_one_process_share_it_and_its_metadata():
    first = make_trace([event("mm", 0, 1)], pid=7, metadata={"a": "1", "b": "1"})
    second = make_trace([event("mm", 5, 6, thread_number=4)], pid=7, metadata={"b": "2"})

    both = merge([first, second])

    assert (len(both.processes), len(both.tracks)) == (1, 1)
    assert both.tracks[0].number == 4, "a number that only one part knows is the track's"
    assert dict(both.metadata) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("column", schema_of(Trace).columns.values(), ids=lambda column: column.name)
def test_every_column_is_joined_as_the_schema_says(column):
    values = {column.name: [0], **({column.table: _table(column.table)} if column.table else {})}
    first, second = make_trace([event("mm", 0, 1)]), make_trace([event("add", 5, 6)])

    both = merge([first, replace(second, **values)])

    there = getattr(both, column.name)
    assert there.dtype == column.dtype
    without = getattr(first, column.name)
    assert there[0] == (column.absent if without is None else without[0])
    assert there[1] == (1 if column.points_to_event else there[1])
    if column.table and column.table not in schema_of(Trace).records:
        assert getattr(both, column.table)[there[1]] == _table(column.table)[0]


def _table(name):
    if name in schema_of(Trace).records:
        stacks = StackInterner()
        stacks.stack([Frame("a.py", 1, "f")])
        return stacks.tree()
    entries = {"tracks": Track(5, "other"), "devices": "NPU", "shapes": (), "lines": SourceLine("a.py", 1)}
    return (entries.get(name, "entry"),)
