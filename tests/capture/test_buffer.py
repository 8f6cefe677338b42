"""From records to a trace, with times put in by hand."""

from typing import Any

import numpy as np
from recording import buffer, column, frozen, new_thread, op, scope

from mtprof_nb.analysis.costs import event_costs
from mtprof_nb.capture.buffers.autograd_links import link_by_node
from mtprof_nb.model.trace import KINDS, PHASES, Track


def test_ops_and_scopes_are_one_row_each_ordered_by_start_the_outer_first() -> None:
    filled = buffer()
    main = new_thread(filled)
    op(main, "inner", 10, 20)
    op(main, "outer", 10, 40)
    scope(main, "scope", 5, 50)
    trace = frozen(filled)

    assert [trace.names[name] for name in trace.name] == ["scope", "outer", "inner"]
    assert [KINDS[kind] for kind in trace.kind] == ["scope", "op", "op"]
    assert trace.start_ns.tolist() == [5, 10, 10]
    assert trace.duration_ns.tolist() == [45, 30, 10]
    assert trace.correlation_id.tolist() == [0, 1, 2]
    assert trace.is_user_annotation.tolist() == [True, False, False]
    assert trace.tracks == (Track(1, "thread 1"),)
    assert (trace.trace_id, trace.step.tolist()) == ("T", [0, 0, 0])


def test_times_are_moved_to_unix_time_by_the_sessions_clock() -> None:
    filled = buffer()
    filled.request.clock.offset_ns = 1_000_000
    op(new_thread(filled), "op", 10, 20)

    assert frozen(filled).start_ns.tolist() == [1_000_010]


def test_an_empty_buffer_is_an_empty_trace() -> None:
    trace = frozen(buffer("shapes", "stack", "before", "after", record_shapes=True, with_stack=True))

    assert (len(trace), trace.tracks, trace.devices) == (0, (), ("CPU",))
    assert trace.shape is not None
    assert trace.allocations is not None


def test_a_record_that_is_cut_short_is_left_out() -> None:
    filled = buffer()
    main = new_thread(filled)
    op(main, "whole", 1, 2)
    main.ops.extend(("half", "CPU"))

    assert [frozen(filled).names] == [("whole",)]


def test_devices_are_numbered_with_the_host_first() -> None:
    filled = buffer()
    main = new_thread(filled)
    op(main, "a", 1, 2, device="npu:1")
    op(main, "b", 3, 4, device="cpu")
    trace = frozen(filled, device=lambda raw: (raw.partition(":")[0].upper(), int(raw.partition(":")[2] or 0)))

    assert trace.devices == ("CPU", "NPU")
    assert trace.device.tolist() == [1, 0]
    assert trace.device_index.tolist() == [1, 0]


def test_a_name_is_read_once_however_often_it_ran() -> None:
    asked: list[Any] = []
    raw = object()
    filled = buffer()
    main = new_thread(filled)
    for start in range(0, 100, 10):
        main.ops.extend((raw, "CPU", start, start + 5))

    def name(given: Any) -> tuple[str, str]:
        asked.append(given)
        return "aten::add", "Tensor"

    trace = frozen(filled, name=name)
    assert asked == [raw]
    assert (trace.names, trace.overloads) == (("aten::add",), ("Tensor",))
    assert trace.overload is not None
    assert trace.overload.tolist() == [0] * 10


def test_shapes_are_interned_and_made_of_tuples_and_integers() -> None:
    filled = buffer("shapes", record_shapes=True)
    main = new_thread(filled)
    op(main, "a", 1, 2, (((2, np.int64(3)), "float32"), ((), None)))
    op(main, "b", 3, 4, (((2, 3), "float32"), ((), None)))
    op(main, "c", 5, 6, ((((2,), (3,)), "float32"),))
    trace = frozen(filled)

    assert trace.shape is not None
    assert trace.shape.tolist() == [0, 0, 1]
    assert trace.shapes == (((2, 3), ()), (((2,), (3,)),))
    assert trace.dtypes == (("float32", ""), ("float32",))


def test_phases_follow_the_optimizers_scopes_and_the_loaders_on_their_own_thread() -> None:
    filled = buffer()
    main, other = new_thread(filled, 1), new_thread(filled, 2)
    op(main, "before", 1, 2)
    scope(main, "Optimizer.step#SGD.step", 10, 30)
    op(main, "update", 15, 20)
    op(other, "elsewhere", 15, 20)
    scope(main, "enumerate(DataLoader)#_SingleProcess.__next__", 40, 60)
    op(main, "collate", 45, 50)
    scope(main, "mine", 70, 80)
    op(main, "after", 75, 78)
    phase = {name: PHASES[phase] for name, phase in column(frozen(filled), "phase").items()}

    assert phase == {
        "before": "other",
        "Optimizer.step#SGD.step": "optimizer",
        "update": "optimizer",
        "elsewhere": "other",
        "enumerate(DataLoader)#_SingleProcess.__next__": "other",
        "collate": "other",
        "mine": "other",
        "after": "other",
    }


def test_scopes_that_cross_on_one_thread_are_asynchronous_and_nested_ones_are_not() -> None:
    filled = buffer()
    main = new_thread(filled)
    scope(main, "task a", 0, 50)
    scope(main, "task b", 10, 60)
    scope(main, "outer", 100, 200)
    scope(main, "inner", 110, 200)
    scope(main, "elsewhere", 300, 310, is_async=True)

    assert column(frozen(filled), "is_async") == {
        "task a": True,
        "task b": True,
        "outer": False,
        "inner": False,
        "elsewhere": True,
    }


def test_a_change_of_memory_is_the_innermost_ops_and_between_ops_nobodys() -> None:
    filled = buffer("before", "after", profile_memory=True)
    main = new_thread(filled)
    op(main, "outer", 10, 50, 0, 300)
    op(main, "inner", 20, 30, 50, 250)
    op(main, "next", 60, 70, 290, 290)
    trace = frozen(filled)

    found = trace.allocations
    assert found is not None
    rows = list(zip(found.time_ns, found.nbytes, found.total, found.event, strict=True))
    assert rows == [(19, 50, 50, 0), (30, 200, 250, 1), (50, 50, 300, 0), (59, -10, 290, -1)]
    assert trace.memory_before is not None
    assert trace.memory_before.tolist() == [0, 50, 290]
    costs = event_costs(trace).memory
    assert costs is not None
    assert (costs.cpu.tolist(), costs.self_cpu.tolist()) == ([300, 200, 0], [100, 200, 0])


def test_memory_that_changed_before_the_first_op_is_counted_and_nobodys() -> None:
    filled = buffer("before", "after", profile_memory=True)
    op(new_thread(filled), "first", 10, 20, 8, 12)
    found = frozen(filled).allocations

    assert found is not None
    assert list(zip(found.time_ns, found.nbytes, found.total, found.event, strict=True)) == [
        (9, 8, 8, -1),
        (20, 4, 12, 0),
    ]


def test_records_stay_in_order_where_an_op_begins_as_another_ends() -> None:
    filled = buffer("before", "after", profile_memory=True)
    main = new_thread(filled)
    op(main, "one", 10, 20, 0, 8)
    op(main, "two", 20, 30, 3, 9)
    found = frozen(filled).allocations

    assert found is not None
    assert (found.time_ns.tolist(), found.total.tolist()) == ([20, 20, 30], [8, 3, 9])


def test_what_a_device_held_before_is_no_part_of_its_memory() -> None:
    filled = buffer("before", "after", profile_memory=True)
    main = new_thread(filled)
    op(main, "taken", 10, 20, 1000, 1060, device="NPU")
    op(main, "old went between", 30, 40, 960, 990, device="NPU")
    trace = frozen(filled)

    found = trace.allocations
    assert found is not None
    assert found.total.tolist() == [60, 0, 30]
    assert trace.memory_before is not None
    assert trace.memory_after is not None
    assert (trace.memory_before.tolist(), trace.memory_after.tolist()) == ([0, 0], [60, 30])


def test_memory_of_devices_and_threads_is_kept_apart() -> None:
    filled = buffer("before", "after", profile_memory=True)
    main, other = new_thread(filled, 1), new_thread(filled, 2)
    op(main, "cpu", 10, 40, 0, 100)
    op(other, "cpu too", 20, 30, 0, 100)
    op(main, "npu", 50, 60, 7, 9, device="NPU")
    op(main, "unread", 70, 80, -1, -1, device="NPU")
    found = frozen(filled).allocations

    assert found is not None
    # What both threads saw happen is counted once, for the one that saw it first.
    assert found.nbytes.tolist() == [100, 2]
    assert found.event.tolist() == [1, 2]
    assert found.track.tolist() == [1, 0]
    assert found.device.tolist() == [0, 1]


def test_a_node_belongs_to_the_op_that_ended_last_before_it_or_that_it_was_made_in() -> None:
    filled = buffer()
    main = new_thread(filled)
    op(main, "mm", 0, 20)
    op(main, "mm", 5, 10)
    main.made += [111, 15]
    op(main, "relu", 30, 40)
    main.made += [222, 45]
    main.backward += [100, 200]
    main.ran += [222, 101]
    op(main, "of relu", 110, 120)
    main.ran += [111, 130]
    op(main, "of mm", 140, 150)
    op(main, "after", 210, 220)
    trace = frozen(filled, link=link_by_node)

    assert trace.forward.tolist() == [-1, -1, -1, 2, 0, -1]
    assert trace.sequence_nr.tolist() == [0, -1, 1, 1, 0, -1]
    assert [PHASES[phase] for phase in trace.phase] == ["forward"] * 3 + ["backward"] * 2 + ["other"]


def test_a_node_at_the_place_of_an_older_one_is_the_newer_one() -> None:
    filled = buffer()
    main = new_thread(filled)
    op(main, "old", 0, 5)
    main.made += [111, 6]
    op(main, "new", 10, 15)
    main.made += [111, 16]
    main.backward += [20, 30]
    main.ran += [111, 21]
    op(main, "of new", 22, 25)

    assert frozen(filled, link=link_by_node).forward.tolist() == [-1, -1, 1]


def test_a_backward_op_whose_node_nobody_saw_has_no_forward_op() -> None:
    filled = buffer()
    main = new_thread(filled)
    op(main, "mm", 0, 5)
    main.made += [111, 6]
    main.backward += [10, 30]
    op(main, "before any node", 11, 12)
    main.ran += [999, 13]
    op(main, "of a stranger", 14, 15)

    assert frozen(filled, link=link_by_node).forward.tolist() == [-1, -1, -1]


def test_operations_and_modules_of_ops_are_columns() -> None:
    filled = buffer("flops", "module", with_flops=True, with_modules=True)
    main = new_thread(filled)
    op(main, "linear", 0, 20, 48, "Net.a")
    op(main, "addmm", 5, 10, 48, "Net.a")
    op(main, "relu", 30, 40, -1, None)
    trace = frozen(filled)

    assert trace.flops is not None
    assert trace.flops.tolist() == [48, -1, -1]
    assert trace.module is not None
    assert (trace.module.tolist(), trace.modules) == ([0, 0, -1], ("Net.a",))
