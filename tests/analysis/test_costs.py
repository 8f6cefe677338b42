"""Costs of single events: folding, device time, memory."""

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.costs import averaged_costs, event_costs, in_ops_ns, loose_allocations, op_costs
from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.model.bookkeeping import BOOKKEEPING
from mtprof_nb.model.trace import OP, empty_trace


def allocation(time_ns, nbytes, **facts):
    return {"time_ns": time_ns, "nbytes": nbytes, **facts}


def test_an_only_child_with_its_parents_name_is_folded_into_the_parent():
    trace = make_trace([event("sum", 0, 100), event("sum", 10, 90), event("fill", 20, 50)])

    costs = averaged_costs(trace)

    assert costs.counted.tolist() == [True, False, True]
    assert costs.parent.tolist() == [-1, 0, 0]
    assert costs.self_ns[[0, 2]].tolist() == [70, 30]
    assert costs.total_ns[[0, 2]].tolist() == [100, 30]


def test_a_chain_of_namesakes_is_folded_into_its_outermost():
    trace = make_trace([event("a", 0, 100), event("a", 10, 90), event("a", 20, 80), event("b", 30, 40)])

    costs = averaged_costs(trace)

    assert costs.counted.tolist() == [True, False, False, True]
    assert costs.parent.tolist() == [-1, 0, 0, 0]
    assert costs.self_ns[[0, 3]].tolist() == [90, 10]


def test_one_of_several_children_is_not_folded():
    trace = make_trace([event("a", 0, 100), event("a", 10, 20), event("b", 30, 40)])

    costs = averaged_costs(trace)

    assert costs.counted.all()
    assert costs.self_ns.tolist() == [80, 10, 10]


def test_nested_profiler_steps_have_one_name_whatever_their_number():
    trace = make_trace([event("ProfilerStep#1", 0, 100), event("ProfilerStep#2", 10, 90)])

    assert averaged_costs(trace).counted.tolist() == [True, False]


@pytest.mark.parametrize("name", sorted(BOOKKEEPING))
def test_bookkeeping_counts_for_nothing_and_takes_nothing_from_its_parent(name):
    trace = make_trace([event("a", 0, 100), event(name, 10, 60), event("b", 20, 30)])

    costs = averaged_costs(trace)

    assert costs.counted.tolist() == [True, False, True]
    assert costs.parent.tolist() == [-1, -1, 0]
    assert costs.self_ns.tolist() == [90, 0, 10]


def test_as_recorded_nothing_is_folded_or_left_out():
    trace = make_trace([event("a", 0, 100), event("a", 10, 90), event("aten::is_leaf", 20, 30)])

    costs = event_costs(trace)

    assert costs.counted.all()
    assert costs.self_ns.tolist() == [20, 70, 10]


def test_what_ended_on_another_thread_has_a_total_and_no_self_time():
    trace = make_trace([event("a", 0, 100), event("async", 10, 60, is_async=True)])

    costs = averaged_costs(trace)

    assert costs.total_ns.tolist() == [100, 50]
    assert costs.self_ns.tolist() == [100, 0]


def test_an_op_costs_the_device_time_of_the_kernels_that_it_and_its_children_launched():
    trace = make_trace(
        [
            event("linear", 0, 100),
            event("addmm", 10, 90),
            event("gemm", 50, 350, kind="kernel", device="CUDA", launcher=1),
            event("bias", 350, 400, kind="kernel", device="CUDA", launcher=0),
            event("stray", 500, 501, kind="kernel", device="CUDA"),
        ]
    )

    costs = averaged_costs(trace)

    assert costs.device_ns.tolist() == [350, 300, 300, 50, 1]
    assert costs.self_device_ns.tolist() == [50, 300, 300, 50, 1]
    assert costs.total_ns.tolist() == [100, 80, 0, 0, 0]
    assert costs.self_ns.tolist() == [20, 80, 0, 0, 0]


def test_kernels_of_a_folded_op_belong_to_what_it_is_folded_into():
    trace = make_trace(
        [
            event("copy", 0, 100),
            event("copy", 10, 90),
            event("memcpy", 50, 350, kind="kernel", device="CUDA", launcher=1),
        ]
    )

    costs = averaged_costs(trace)

    assert costs.device_ns[[0, 2]].tolist() == costs.self_device_ns[[0, 2]].tolist() == [300, 300]


def test_without_kernels_and_memory_there_are_no_columns_for_them():
    costs = averaged_costs(make_trace([event("a", 0, 1)]))

    assert costs.device_ns is None
    assert costs.self_device_ns is None
    assert costs.memory is None


def test_allocations_count_for_every_event_that_was_running_and_as_self_for_the_innermost():
    trace = make_trace(
        [event("linear", 0, 100), event("addmm", 10, 90)],
        allocations=[allocation(5, 7), allocation(20, 100), allocation(90, -40)],
    )

    memory = averaged_costs(trace).memory

    assert memory.cpu.tolist() == [67, 60]
    assert memory.self_cpu.tolist() == [7, 60]
    assert memory.device.tolist() == memory.self_device.tolist() == [0, 0]


def test_an_op_has_the_bytes_of_its_own_thread_and_a_scope_those_of_all():
    trace = make_trace(
        [
            event("step", 0, 100, kind="scope", thread=1),
            event("mm", 10, 50, thread=1),
            event("addmm", 20, 40, thread=2),
            event("add", 60, 70, thread=3),
        ],
        [
            {"time_ns": 25, "nbytes": 7, "event": 2, "thread": 2},
            {"time_ns": 30, "nbytes": 100, "event": 1, "thread": 1},
            {"time_ns": 35, "nbytes": -7, "event": 2, "thread": 2},
            {"time_ns": 39, "nbytes": 9, "event": 2, "thread": 2},
        ],
    )

    memory = averaged_costs(trace).memory

    assert memory.cpu.tolist() == [109, 100, 9, 0]
    assert memory.self_cpu.tolist() == [9, 100, 9, 0]


def test_what_a_thread_releases_outside_its_ops_is_loose_whatever_other_threads_run():
    trace = make_trace(
        [event("mm", 0, 100, thread=1), event("free", 10, 20, thread=2), event("step", 60, 70, kind="scope", thread=1)],
        [
            allocation(15, 8, event=1, thread=2),
            allocation(50, -8, thread=2),
            allocation(65, 4, thread=2),
            allocation(90, 2, event=0, thread=1),
        ],
    )

    assert loose_allocations(trace).tolist() == [1]


def test_memory_of_devices_is_counted_apart_from_the_hosts():
    trace = make_trace(
        [event("a", 0, 100), event("k", 0, 100, kind="kernel", device="CUDA")],
        allocations=[allocation(5, 7), allocation(6, 50, device="CUDA")],
    )

    memory = averaged_costs(trace).memory

    assert memory.cpu.tolist() == [7, 0]
    assert memory.device.tolist() == memory.self_device.tolist() == [50, 0]


def test_allocations_outside_of_all_counted_events_are_loose():
    trace = make_trace(
        [event("a", 10, 20), event("aten::is_leaf", 30, 40), event("kernel", 50, 60, kind="kernel", device="CUDA")],
        allocations=[allocation(time, 1) for time in (5, 10, 20, 21, 35, 55)],
    )

    assert loose_allocations(trace).tolist() == [0, 3, 4, 5]
    assert loose_allocations(make_trace([], allocations=[])).tolist() == []
    assert loose_allocations(make_trace([event("a", 0, 1)])).tolist() == []


def test_an_allocation_is_not_loose_while_any_earlier_event_is_still_running():
    trace = make_trace([event("long", 0, 100), event("short", 10, 20, thread=2)], allocations=[allocation(50, 1)])

    assert loose_allocations(trace).tolist() == []


def test_where_the_runtime_tells_only_bytes_around_ops_a_scope_has_the_sum_of_its_ops():
    trace = make_trace(
        [
            event("scope", 0, 100, kind="scope"),
            event("linear", 10, 60, memory=(1000, 1100)),
            event("addmm", 20, 50, memory=(1000, 1090)),
            event("relu", 70, 80, memory=(1100, 1050)),
            event("npu op", 85, 90, memory=(10, 30), device="NPU"),
        ]
    )

    memory = averaged_costs(trace).memory

    assert memory.cpu.tolist() == [50, 100, 90, -50, 0]
    assert memory.self_cpu.tolist() == [0, 10, 90, -50, 0]
    assert memory.device.tolist() == [20, 0, 0, 0, 20]
    assert memory.self_device.tolist() == [0, 0, 0, 0, 20]


def test_an_empty_trace_costs_nothing():
    costs = averaged_costs(empty_trace())

    assert len(costs.counted) == len(costs.self_ns) == 0


def test_time_in_ops_and_of_lines_is_the_same_whether_python_functions_were_recorded() -> None:
    ops = [event("backward", 0, 100, line=("m.py", 3)), event("mul", 40, 50, line=("m.py", 3))]
    frames = [event("custom", 10, 90, kind="python"), event("sleep", 20, 80, kind="python")]
    plain, with_frames = make_trace(ops), make_trace([*ops, *frames])

    assert in_ops_ns(plain) == in_ops_ns(with_frames) == 100
    assert line_costs(plain).forward_ns.tolist() == line_costs(with_frames).forward_ns.tolist() == [100, 0]
    assert averaged_costs(with_frames).self_ns[with_frames.kind == OP].tolist() == [20, 10]


def test_a_call_of_the_runtime_counts_for_its_op_but_in_torchs_rows() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 100),
            event("cudaLaunchKernel", 20, 50, kind="runtime", launcher=0),
            event("cuLaunchKernel", 30, 45, kind="runtime", launcher=0),
            event("aten::add", 60, 90),
            event("cudaDeviceSynchronize", 200, 300, kind="runtime"),
        ]
    )
    ours, torchs = op_costs(trace), averaged_costs(trace)

    assert ours.self_ns.tolist() == [70, 0, 0, 30, 100]
    assert torchs.self_ns.tolist() == [40, 15, 15, 30, 100]
    assert in_ops_ns(trace) == 100
