"""Memory over time, its peak, its blocks and what they were for, on hand-made recordings."""

from typing import Any

import numpy as np
from traces import event, make_trace

from mtprof_nb.analysis.devices.recorded_devices import Device
from mtprof_nb.analysis.memory.allocation_pairs import releases
from mtprof_nb.analysis.memory.memory_categories import Category, categories
from mtprof_nb.analysis.memory.memory_curve import (
    Allocation,
    AllocationGroup,
    largest_kinds,
    memory_curve,
    memory_devices,
    peak,
    thinned,
)
from mtprof_nb.model.trace import Allocations, Recorded, Trace, empty_trace

CPU = Device("CPU", 0)


def _taken(time_ns: int, nbytes: int, address: int, event: int = -1, **facts: Any) -> dict[str, Any]:
    return {"time_ns": time_ns, "nbytes": nbytes, "address": address, "event": event, **facts}


def _names(trace: Trace) -> list[str]:
    return [Category(number).name for number in categories(trace).tolist()]


def test_the_curve_is_the_allocators_own_count() -> None:
    rows = [event("aten::empty", 0, 10)]
    trace = make_trace(rows, [_taken(1, 64, 8, 0, total=164), _taken(5, -64, 8, 0, total=100)])
    curve = memory_curve(trace, CPU)

    assert curve.time_ns.tolist() == [1, 5]
    assert curve.allocated.tolist() == [164, 100]
    assert curve.event.tolist() == [0, 0]


def test_the_peak_is_its_first_moment_and_the_event_that_reached_it() -> None:
    rows = [event("aten::empty", 0, 10), event("aten::mm", 20, 30)]
    trace = make_trace(
        rows, [_taken(1, 10, 8, 0), _taken(21, 50, 16, 1), _taken(25, -50, 16, 1), _taken(26, 50, 16, 1)]
    )

    assert peak(memory_curve(trace, CPU)) == (21, 60, 1)
    assert peak(memory_curve(trace, Device("CUDA", 0))) is None


def test_each_device_has_its_own_curve() -> None:
    rows = [event("a", 0, 10), event("b", 20, 30, device="CUDA")]
    allocations = [
        _taken(1, 10, 8, total=10),
        _taken(2, 512, 8, device="CUDA", device_index=1, total=512),
        _taken(3, 512, 16, device="CUDA", device_index=1, total=1024),
    ]
    trace = make_trace(rows, allocations)

    assert memory_devices(trace) == [CPU, Device("CUDA", 1)]
    assert [str(device) for device in memory_devices(trace)] == ["cpu", "cuda:1"]
    assert memory_curve(trace, Device("CUDA", 1)).allocated.tolist() == [512, 1024]


def test_without_an_allocators_events_the_curve_is_what_the_ops_read() -> None:
    rows = [
        event("outer", 0, 100, memory=(10, 30)),
        event("inner", 20, 40, memory=(10, 50)),
        event("scope", 0, 200, kind="scope"),
    ]
    trace = make_trace(rows)
    curve = memory_curve(trace, CPU)

    assert memory_devices(trace) == [CPU]
    assert curve.time_ns.tolist() == [0, 20, 40, 100]
    assert curve.allocated.tolist() == [10, 10, 50, 30]
    top = peak(curve)
    assert top is not None
    assert (top.time_ns, top.nbytes, trace.names[trace.name[top.event]]) == (40, 50, "inner")


def test_without_memory_there_is_no_device_and_no_curve() -> None:
    trace = make_trace([event("a", 0, 1)])

    assert memory_devices(trace) == []
    assert memory_curve(trace, CPU).time_ns.tolist() == []
    assert largest_kinds(trace, CPU) == []
    assert categories(trace).tolist() == []


def test_a_release_ends_the_last_allocation_at_its_address() -> None:
    allocations = [
        _taken(1, 10, 8),
        _taken(2, 20, 16),
        _taken(3, -10, 8),
        _taken(4, 30, 8),
        _taken(5, -30, 8),
        _taken(6, -99, 24),
        _taken(7, 5, 0),
        _taken(8, -5, 0),
    ]
    trace = make_trace([event("a", 0, 1)], allocations)
    assert trace.allocations is not None

    assert releases(trace.allocations).tolist() == [2, -1, 0, 4, 3, -1, -1, -1]


def test_the_same_address_on_another_device_is_another_block() -> None:
    rows = [event("a", 0, 1), event("b", 0, 1, device="CUDA")]
    allocations = [_taken(1, 10, 8), _taken(2, -10, 8, device="CUDA"), _taken(3, -10, 8, device_index=1)]
    trace = make_trace(rows, allocations)
    assert trace.allocations is not None

    assert releases(trace.allocations).tolist() == [-1, -1, -1]


def test_the_largest_blocks_come_first_with_their_lives() -> None:
    rows = [event("aten::empty", 0, 10), event("aten::mm", 20, 30)]
    trace = make_trace(rows, [_taken(1, 10, 8, 0), _taken(21, 50, 16, 1), _taken(40, -50, 16), _taken(50, 50, 24)])

    assert [alike.largest for alike in largest_kinds(trace, CPU, 2)] == [
        (50, 21, 40, 1, Category.UNKNOWN, -1),
        (50, 50, None, -1, Category.UNKNOWN, -1),
    ]


def test_what_goes_while_its_op_runs_is_temporary() -> None:
    rows = [event("aten::linear", 0, 100), event("aten::empty", 10, 20)]
    trace = make_trace(rows, [_taken(15, 8, 8, 1), _taken(90, -8, 8, 0), _taken(95, 8, 8, 0), _taken(150, -8, 8)])

    assert _names(trace) == ["TEMPORARY", "TEMPORARY", "UNKNOWN", "UNKNOWN"]


def test_what_a_scope_outlives_is_not_temporary() -> None:
    rows = [event("mine", 0, 100, kind="scope"), event("aten::empty", 10, 20)]
    trace = make_trace(rows, [_taken(15, 8, 8, 1), _taken(90, -8, 8, 0)])

    assert _names(trace) == ["UNKNOWN", "UNKNOWN"]


def test_the_output_of_a_forward_op_that_a_backward_comes_back_to_is_an_activation() -> None:
    rows = [
        event("aten::linear", 0, 100),
        event("aten::addmm", 10, 90),
        event("aten::randn", 110, 120),
        event("AddmmBackward0", 200, 300, phase="backward", forward=1),
    ]
    trace = make_trace(rows, [_taken(50, 8, 8, 1), _taken(115, 8, 16, 2), _taken(210, -8, 8, 3)])

    assert _names(trace) == ["ACTIVATION", "UNKNOWN", "ACTIVATION"]


def _backward(kept: str, **facts: Any) -> list[dict[str, Any]]:
    """A node of the backward pass, then the event that keeps a gradient of (2, 3) floats."""
    shapes = {"shapes": ((2, 3),), "dtypes": ("float",), **facts}
    return [
        event("autograd::engine::evaluate_function: MmBackward0", 0, 100, phase="backward"),
        event("MmBackward0", 5, 95, phase="backward"),
        event("aten::mm", 10, 90, phase="backward"),
        event("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 110, 150, phase="backward"),
        event("torch::autograd::AccumulateGrad", 115, 145, phase="backward", **shapes),
        event(kept, 120, 140, phase="backward", **shapes),
    ]


def test_a_block_of_the_size_that_autograd_kept_is_a_gradient() -> None:
    allocations = [_taken(50, 24, 8, 2), _taken(60, 24, 16, 2), _taken(120, -24, 8, 3), _taken(500, -24, 16)]

    trace = make_trace(_backward("aten::detach"), allocations)
    assert _names(trace) == ["AUTOGRAD_DETAIL", "GRADIENT", "AUTOGRAD_DETAIL", "GRADIENT"]


def test_a_block_of_another_size_is_no_gradient() -> None:
    trace = make_trace(_backward("aten::detach"), [_taken(50, 28, 8, 2)])

    assert _names(trace) == ["UNKNOWN"]


def test_a_gradient_added_to_another_keeps_no_block() -> None:
    trace = make_trace(_backward("aten::add_"), [_taken(50, 24, 8, 2), _taken(170, -24, 8)])

    assert _names(trace) == ["UNKNOWN", "UNKNOWN"]


def test_a_device_rounds_up_the_block_of_a_gradient() -> None:
    trace = make_trace(_backward("aten::detach"), [_taken(50, 512, 8, 2)])

    assert _names(trace) == ["GRADIENT"]


def test_a_gradient_of_a_type_of_unknown_size_is_not_guessed() -> None:
    trace = make_trace(_backward("aten::detach", dtypes=("float7",)), [_taken(50, 24, 8, 2)])

    assert _names(trace) == ["UNKNOWN"]


def test_what_the_node_of_a_backward_pass_releases_itself_is_not_temporary() -> None:
    trace = make_trace(_backward("aten::detach"), [_taken(50, 40, 8, 2), _taken(95, -40, 8, 1)])

    assert _names(trace) == ["AUTOGRAD_DETAIL", "AUTOGRAD_DETAIL"]


def test_what_outlives_a_step_of_the_optimizer_is_its_state() -> None:
    rows = [
        event("Optimizer.step#Adam.step", 0, 100, kind="scope", phase="optimizer"),
        event("aten::zeros_like", 10, 20, phase="optimizer"),
        event("aten::sqrt", 30, 40, phase="optimizer"),
    ]
    trace = make_trace(rows, [_taken(15, 8, 8, 1), _taken(35, 8, 16, 2), _taken(60, -8, 16, 0)])

    assert _names(trace) == ["OPTIMIZER_STATE", "UNKNOWN", "UNKNOWN"]


def test_categories_are_found_once_for_a_trace() -> None:
    trace = make_trace([event("a", 0, 1)], [_taken(0, 8, 8, 0)])

    assert np.shares_memory(categories(trace), categories(trace))


def test_a_block_taken_while_nothing_was_recorded_is_unknown() -> None:
    held = Allocations(
        time_ns=np.array([5, 9]),
        nbytes=np.array([4096, -4096]),
        total=np.array([4096, 0]),
        address=np.array([8, 8]),
        event=np.array([-1, -1]),
        track=np.array([-1, -1]),
        device=np.array([0, 0]),
        device_index=np.array([0, 0]),
    )
    trace = empty_trace(allocations=held, recorded=Recorded(profile_memory=True))

    assert _names(trace) == ["UNKNOWN", "UNKNOWN"]
    assert largest_kinds(trace, CPU) == [AllocationGroup(Allocation(4096, 5, 9, -1, Category.UNKNOWN), 1, 4096)]


def test_a_long_curve_keeps_its_ends_its_peaks_and_its_lows_in_fewer_points() -> None:
    held = np.tile([10, 20, 15, 12], 5_000)
    held[[17, 7_777, 12_001]] = [98, 99, 1]
    kept = thinned(held, 400)

    assert len(kept) <= 400
    assert {0, 17, 7_777, 12_001, 19_999} <= set(kept.tolist())
    assert thinned(held[:400], 400).tolist() == list(range(400))
