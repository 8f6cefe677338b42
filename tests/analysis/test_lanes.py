"""Lanes of a timeline: threads by depth, async events and kernels packed beside them."""

import numpy as np
from traces import event, make_trace

from mtprof_nb.analysis.lanes import Lane, lanes, packed
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Track


def test_each_thread_has_a_lane_and_each_depth_a_row() -> None:
    trace = make_trace(
        [
            event("outer", 0, 100, thread=7),
            event("inner", 10, 20, thread=7),
            event("innermost", 12, 15, thread=7),
            event("elsewhere", 5, 50, thread=9),
        ]
    )
    found = lanes(trace)

    assert found.lanes == (Lane("thread 7", 0, 3, 0), Lane("thread 9", 3, 1, 1))
    by_name = dict(zip([trace.names[name] for name in trace.name], found.row.tolist(), strict=True))
    assert by_name == {"outer": 0, "inner": 1, "innermost": 2, "elsewhere": 3}
    assert found.rows == 4


def test_python_frames_take_no_row_unless_they_are_asked_for() -> None:
    trace = make_trace([event("frame", 0, 100, kind="python"), event("op", 10, 20)])

    assert lanes(trace).row.tolist() == [-1, 0]
    assert lanes(trace, python=True).row.tolist() == [0, 1]


def test_overlapping_async_scopes_and_kernels_have_lanes_of_their_own() -> None:
    trace = make_trace(
        [
            event("op", 0, 100),
            event("request a", 5, 60, kind="scope", is_async=True),
            event("request b", 10, 90, kind="scope", is_async=True),
            event("request c", 70, 95, kind="scope", is_async=True),
            event("kernel", 20, 40, kind="kernel", device="CUDA", device_index=1),
        ]
    )
    found = lanes(trace)

    assert [(lane.title, lane.rows) for lane in found.lanes] == [("thread 1", 1), ("async", 2), ("CUDA:1 stream 1", 1)]
    assert found.row.tolist() == [0, 1, 2, 3, 1]


def test_an_async_op_is_drawn_beside_async_scopes() -> None:
    trace = make_trace(
        [
            event("op", 0, 100),
            event("aten::fut", 10, 150, is_async=True),
            event("request", 20, 60, kind="scope", is_async=True),
            event("frame", 30, 160, kind="python", is_async=True),
        ]
    )

    assert lanes(trace).lanes == (Lane("thread 1", 0, 1, 0), Lane("async", 1, 2, -1))
    assert lanes(trace).row.tolist() == [0, 1, 2, -1]


def test_a_kernel_whose_device_has_no_known_index_is_in_a_lane_of_its_device() -> None:
    trace = make_trace(
        [
            event("op", 0, 100),
            event("kernel", 20, 40, kind="kernel", device="CUDA", device_index=-1),
            event("kernel", 50, 60, kind="kernel", device="CUDA", device_index=0),
        ]
    )

    assert [lane.title for lane in lanes(trace).lanes] == ["thread 1", "CUDA stream 1", "CUDA:0 stream 1"]
    assert lanes(trace).row.tolist() == [0, 1, 2]


def test_each_stream_of_a_device_has_a_lane_with_a_lane_for_its_scopes_above() -> None:
    rows = [
        event("gemm", 10, 40, kind="kernel", device="CUDA", thread=7),
        event("all_reduce", 20, 60, kind="collective", device="CUDA", thread=20),
        event("copy", 25, 30, kind="copy", device="CUDA", device_index=1, thread=7),
        event("step", 5, 70, kind="device_scope", device="CUDA", thread=7),
        event("forward", 10, 50, kind="device_scope", device="CUDA", thread=7),
        event("overlapping", 30, 45, kind="kernel", device="CUDA", thread=7),
    ]
    streams = ["CUDA:0 stream 7 scopes", "CUDA:0 stream 7", "CUDA:0 stream 20", "CUDA:1 stream 7"]
    trace = make_trace(rows, pid=1, rank=0)

    assert [(lane.title, lane.rows) for lane in lanes(trace).lanes] == list(zip(streams, [2, 2, 1, 1], strict=True))
    assert lanes(trace).row.tolist() == [0, 1, 2, 4, 5, 3]

    two = lanes(merge([trace, make_trace(rows, pid=2, rank=1)]))

    assert [lane.title for lane in two.lanes] == [f"rank {rank}, {stream}" for rank in (0, 1) for stream in streams]


def test_a_thread_without_a_name_is_known_by_its_number() -> None:
    trace = make_trace([event("op", 0, 1)])
    object.__setattr__(trace, "tracks", (Track(4321, ""),))

    assert lanes(trace).lanes[0].title == "thread 4321"


def test_nothing_recorded_has_no_lane() -> None:
    assert lanes(make_trace([])).lanes == ()


def test_packing_needs_no_more_rows_than_overlap_at_once() -> None:
    starts, ends = np.array([0, 1, 2, 10, 11]), np.array([10, 3, 4, 12, 20])

    assert packed(starts, ends).tolist() == [0, 1, 2, 0, 1]


def test_of_very_deep_nesting_the_outer_levels_are_drawn_and_the_title_says_so() -> None:
    trace = make_trace([event("scope", at, 4_000 - at, kind="scope") for at in range(1_700)])
    found = lanes(trace)

    assert found.lanes == (Lane("thread 1 (500 of 1,700 levels)", 0, 500, 0),)
    assert found.row.tolist() == [*range(500), *[-1] * 1_200]
