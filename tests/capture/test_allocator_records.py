"""Whose an allocator's records are, and what a device held around each op, on hand-made events."""

from typing import Any

import numpy as np
from traces import event, make_trace

from mtprof_nb.analysis.costs import averaged_costs
from mtprof_nb.analysis.memory.allocation_pairs import releases
from mtprof_nb.building.allocator_records import held_around, innermost_events, of_recording, with_own_memory
from mtprof_nb.capture.finish import _merged
from mtprof_nb.model.trace import OP, Allocations, Trace, empty_trace


def records(trace: Trace) -> Allocations:
    assert trace.allocations is not None
    return trace.allocations


def taken(time_ns: int, nbytes: int, **facts: Any) -> dict[str, Any]:
    return {"time_ns": time_ns, "nbytes": nbytes, **facts}


def test_a_record_is_the_innermost_events_of_its_own_thread() -> None:
    trace = make_trace(
        [
            event("step", 0, 100, kind="scope"),
            event("linear", 10, 50),
            event("addmm", 20, 30),
            event("run (a.py)", 22, 28, kind="python"),
            event("other", 0, 100, thread=2),
            event("task", 60, 90, kind="scope", is_async=True),
        ],
        [taken(5, 1), taken(15, 1), taken(25, 1), taken(25, 1, thread=2), taken(70, 1), taken(100, 1)],
    )
    found = innermost_events(trace, records(trace))
    names = [None if row < 0 else trace.names[trace.name[row]] for row in found.tolist()]
    assert names == ["step", "linear", "addmm", "other", "step", None]


def test_a_device_holds_what_its_own_allocator_says_and_no_other_of_its_type() -> None:
    trace = make_trace(
        [
            event("mm", 0, 10, device="NPU", device_index=0),
            event("add", 20, 30, device="NPU", device_index=1),
            event("sin", 40, 50),
        ],
        [
            taken(5, 100, total=1100, device="NPU", device_index=0),
            taken(25, 7, total=207, device="NPU", device_index=1),
        ],
    )
    before, after = held_around(trace, records(trace), trace.kind == OP)
    assert before.tolist() == [1000, 200, 0]
    assert after.tolist() == [1100, 207, 0]


def test_a_block_counts_from_its_allocation_and_one_that_was_there_before_not_at_all() -> None:
    trace = make_trace(
        [event("mm", 0, 10), event("add", 20, 30), event("sin", 40, 50)],
        [
            taken(1, 100, address=8, total=1100),
            taken(2, -700, address=16, total=400),
            taken(21, 60, address=16, total=460),
            taken(25, -100, address=8, total=360),
            taken(26, -100, address=8, total=260),
            taken(27, -5, address=0, total=255),
        ],
    )
    own = with_own_memory(trace)
    assert records(own).time_ns.tolist() == [1, 21, 25, 27]
    assert records(own).total.tolist() == [100, 160, 60, 55]
    assert own.memory_before is not None
    assert own.memory_after is not None
    assert (own.memory_before.tolist(), own.memory_after.tolist()) == ([0, 100, 55], [100, 55, 55])


def test_each_device_has_its_own_blocks_and_its_own_total() -> None:
    trace = make_trace(
        [event("mm", 0, 10, device="NPU"), event("add", 20, 30)],
        [
            taken(1, 7, address=8, total=1007, device="NPU", device_index=1),
            taken(2, 9, address=8, total=2009),
            taken(3, -9, address=8, total=2000, device="NPU"),
            taken(4, -7, address=8, total=1000, device="NPU", device_index=1),
        ],
    )
    own = of_recording(trace, records(trace))
    assert own.time_ns.tolist() == [1, 2, 4]
    assert own.total.tolist() == [7, 9, 0]


def test_an_allocation_at_an_address_that_is_held_ends_the_earlier_block_before_its_op() -> None:
    trace = make_trace(
        [
            event("empty", 0, 10),
            event("step", 15, 90, kind="scope"),
            event("ones", 20, 40),
            event("empty", 22, 30),
            event("fill", 50, 60),
        ],
        [
            taken(5, 100, address=8, event=0),
            taken(25, 60, address=8, event=3),
            taken(52, 7, address=8, event=4),
            taken(52, 9, address=8, event=4),
            taken(80, -9, address=8, event=1),
            taken(95, 3, address=16),
            taken(99, 4, address=16),
        ],
    )
    own = with_own_memory(trace)
    found = records(own)
    assert list(zip(found.time_ns.tolist(), found.nbytes.tolist(), found.event.tolist(), strict=True)) == [
        (5, 100, 0),
        (19, -100, -1),
        (25, 60, 3),
        (49, -60, -1),
        (52, 7, 4),
        (52, -7, -1),
        (52, 9, 4),
        (80, -9, 1),
        (95, 3, -1),
        (98, -3, -1),
        (99, 4, -1),
    ]
    assert found.total.tolist() == [100, 0, 60, 0, 7, 0, 9, 0, 3, 0, 4]
    assert own.memory_before is not None
    assert own.memory_after is not None
    assert own.memory_before[[0, 2, 4]].tolist() == [0, 0, 0]
    assert own.memory_after[[0, 2, 4]].tolist() == [100, 60, 9]
    memory = averaged_costs(own).memory
    assert memory is not None
    assert memory.cpu.tolist() == [100, -100 + 60 - 60 + 9 - 9, 60, 60, 9]
    assert releases(found).tolist() == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, -1]
    assert records(with_own_memory(own)).total.tolist() == found.total.tolist()


def test_blocks_without_an_address_may_be_held_at_once() -> None:
    trace = make_trace([event("mm", 0, 10)], [taken(1, 100), taken(2, 60), taken(3, -160)])
    assert of_recording(trace, records(trace)).total.tolist() == [100, 160, 0]


def test_two_runtimes_on_one_device_add_up_to_one_curve() -> None:
    one = make_trace([event("mm", 0, 50)], [taken(1, 100, address=8), taken(30, -100, address=8)])
    other = make_trace([event("add", 0, 50)], [taken(10, 40), taken(20, -40)])
    assert records(_merged([one, other])).total.tolist() == [100, 140, 100, 0]


def test_nothing_is_said_of_ops_that_are_not_asked_for() -> None:
    trace = make_trace([event("mm", 0, 10), event("add", 20, 30)], [taken(5, 100)])
    before, after = held_around(trace, records(trace), np.array([True, False]))
    assert (before.tolist(), after.tolist()) == ([0, -1], [100, -1])


def test_one_runtimes_records_are_taken_as_they_are_beside_a_hook_that_has_none() -> None:
    trace = make_trace([event("mm", 0, 50)], [taken(1, 100, address=8, total=7)])
    assert _merged([trace, empty_trace()]) is trace
