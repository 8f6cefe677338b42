"""Merged traces: nothing lost, every reference follows."""

from traces import event, make_trace

from mtprof_nb.merge import merge
from mtprof_nb.trace import Allocations, OutsideOps, SourceLine


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
    assert [both.threads[thread].native_id for thread in both.thread] == [2, 1, 1, 2]
    assert both.allocations.event.tolist() == [2, 3]
    assert [both.threads[thread].native_id for thread in both.allocations.thread] == [1, 2]
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
    second = make_trace([event("add", 2, 3)], outside={two: OutsideOps(5, 9), three: OutsideOps(7, 7)})
    expected = {one: (10, 15), two: (25, 29), three: (7, 7)}
    assert merge([first, second]).outside == expected
    assert merge([first, make_trace([event("add", 2, 3)])]).outside is None


def test_a_part_that_left_ops_out_leaves_them_out_of_all():
    whole, part = make_trace([event("mm", 0, 1)]), make_trace([event("add", 2, 3)], is_partial=True)
    assert (whole.has_all_ops, part.has_all_ops, merge([whole, part]).has_all_ops) == (True, False, False)
