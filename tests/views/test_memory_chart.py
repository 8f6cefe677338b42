"""Memory over time: the curve, its peak, and the largest allocations, with exact numbers."""

import json

import numpy as np
import pytest
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.analysis.memory.memory_curve import MemoryCurve
from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.memory.memory_figure import byte_ticks, memory
from mtprof_nb.views.tabs.memory.memory_tab import MemoryTab, outline


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [event("aten::empty", 100, 200, line=("m.py", 3)), event("aten::mm", 300, 400), event("free", 500, 600)],
        allocations=[
            {"time_ns": 150, "nbytes": 1_024, "event": 0, "address": 1},
            {"time_ns": 350, "nbytes": 4_096, "event": 1, "address": 2},
            {"time_ns": 550, "nbytes": -4_096, "event": 2, "address": 2},
        ],
        began_ns=0,
        ended_ns=1_000,
    )


def test_a_curve_has_the_bytes_after_each_change_and_its_cause(trace: Trace) -> None:
    first = MemoryTab(Scene(trace)).first()
    (curve,) = first["curves"]

    assert (first["whole_ns"], curve["title"]) == (1_000, "cpu")
    assert (curve["time_ns"], curve["nbytes"]) == ([150, 350, 550], [1_024, 5_120, 1_024])
    assert (curve["change"], curve["event"]) == ([0, 4_096, -4_096], [0, 1, 2])
    assert [first["texts"]["names"][name] for name in curve["name"]] == ["aten::empty", "aten::mm", "free"]
    assert [first["texts"]["lines"].get(line) for line in curve["line"]] == ["m.py:3", None, None]
    assert (curve["peak"]["time_ns"], curve["peak"]["nbytes"], curve["peak"]["event"]) == (350, 5_120, 1)


def test_the_figure_is_stepwise_and_lasts_to_the_end(trace: Trace) -> None:
    curve, peak = memory(trace).data

    assert list(curve.x) == [1.5e-7, 3.5e-7, 5.5e-7, 1e-6]
    assert list(curve.y) == [1_024, 5_120, 1_024, 1_024]
    assert curve.line.shape == "hv"
    assert curve.hovertext[1] == "<b>5.00 KiB</b> on cpu, at 0.350 µs<br>+4.00 KiB by aten::mm"
    assert (peak.x, peak.y, peak.text) == ((3.5e-7,), (5_120,), ("peak 5.00 KiB by aten::mm",))


def test_the_peak_names_the_line_that_reached_it() -> None:
    trace = make_trace(
        [event("aten::empty", 0, 10, line=("train.py", 21))],
        allocations=[{"time_ns": 5, "nbytes": 2_048, "event": 0}],
    )

    assert memory(trace).data[1].text == ("peak 2.00 KiB by aten::empty, train.py:21",)


def test_memory_of_the_backward_pass_names_the_line_of_the_forward_op() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 10, stack=[("train.py", 21, "<module>")]),
            event("MmBackward0", 20, 30, stack=[("train.py", 22, "<module>")], phase="backward", forward=0),
        ],
        allocations=[{"time_ns": 25, "nbytes": 2_048, "event": 1}],
    )

    assert memory(trace).data[1].text == ("peak 2.00 KiB by MmBackward0, train.py:21",)
    assert MemoryTab(Scene(trace)).first()["largest"]["detail"][0].endswith("train.py:21")


def test_the_largest_allocations_come_first_and_tell_how_long_they_were_held(trace: Trace) -> None:
    largest = MemoryTab(Scene(trace)).first()["largest"]

    assert largest["label"] == ["aten::mm", "aten::empty"]
    assert largest["value"] == {
        "nbytes": [4_096, 1_024],
        "count": [1, 1],
        "total_bytes": [4_096, 1_024],
        "at_ns": [350, 150],
        "held_ns": [200, None],
    }
    assert [column["key"] for column in largest["columns"]] == list(largest["value"])
    assert "m.py:3" in largest["detail"][1]


def test_allocations_of_one_op_on_one_line_are_one_row_that_names_the_caller() -> None:
    lines = [("m.py", 3), ("m.py", 3), ("m.py", 9)]
    rows = [
        event(name, 100 * step + begin, 100 * step + end, line=line)
        for step, line in enumerate(lines)
        for name, begin, end in (("layer_norm", 0, 90), ("empty", 10, 20))
    ]
    allocations = [
        {"time_ns": 100 * step + 15, "nbytes": nbytes, "event": 2 * step + 1, "address": step + 1}
        for step, nbytes in enumerate((50, 70, 60))
    ]
    largest = MemoryTab(Scene(make_trace(rows, allocations))).first()["largest"]

    assert largest["label"] == ["empty", "empty"]
    assert [detail.partition(", ")[0] for detail in largest["detail"]] == ["in layer_norm", "in layer_norm"]
    assert [detail[-6:] for detail in largest["detail"]] == ["m.py:3", "m.py:9"]
    assert largest["value"] == {
        "nbytes": [70, 60],
        "count": [2, 1],
        "total_bytes": [120, 60],
        "at_ns": [115, 215],
        "held_ns": [None, None],
    }


def test_a_window_has_the_level_it_begins_with_and_all_its_changes() -> None:
    curve = MemoryCurve(np.arange(10) * 10, np.arange(10), *[np.full(10, -1, np.int32)] * 2)

    assert outline(curve, 25, 45).tolist() == [2, 3, 4, 5]


def test_each_device_has_a_curve() -> None:
    trace = make_trace(
        [event("a", 0, 10), event("b", 20, 30, device="CUDA")],
        allocations=[
            {"time_ns": 5, "nbytes": 100, "event": 0},
            {"time_ns": 25, "nbytes": 200, "event": 1, "device": "CUDA", "total": 200},
        ],
    )
    figure = memory(trace)

    assert sorted(line.name for line in figure.data if line.mode == "lines") == ["cpu", "cuda:0"]
    assert figure.layout.showlegend


def test_readings_of_ops_make_a_curve_where_the_allocator_tells_nothing() -> None:
    trace = make_trace([event("a", 0, 10, memory=(0, 64)), event("b", 20, 30, memory=(64, 32))])

    assert list(memory(trace).data[0].y)[:4] == [0, 64, 64, 32]


def test_ticks_are_round_numbers_of_bytes() -> None:
    assert byte_ticks(10 << 20) == [0, 2 << 20, 4 << 20, 6 << 20, 8 << 20, 10 << 20]
    assert byte_ticks(0) == [0]


def test_without_the_flag_the_tab_and_the_figure_name_it() -> None:
    trace = make_trace([event("aten::mm", 0, 10)])

    assert "--profile-memory" in MemoryTab(Scene(trace)).first()["empty"]
    with pytest.raises(ValueError, match="--profile-memory"):
        memory(trace)
    assert "--profile-memory" in MemoryTab(Scene(empty_trace())).first()["empty"]


def test_memory_recorded_but_never_touched_is_said() -> None:
    trace = make_trace([event("aten::mm", 0, 10)], allocations=[])

    assert "nothing was allocated" in MemoryTab(Scene(trace)).first()["empty"]
    with pytest.raises(ValueError, match="nothing was allocated"):
        memory(trace)


def test_a_window_is_answered_in_time_since_the_recording_began() -> None:
    trace = training_run(20_000)
    tab = MemoryTab(Scene(trace))
    answer = tab.answer({"ask": "window", "begin_ns": 1_000_000, "end_ns": 2_000_000})

    assert answer["drawn_ns"] == [1_000_000, 2_000_000]
    times = answer["curves"][0]["time_ns"]
    assert times[0] <= 1_000_000
    assert 2_000_000 <= times[-1] < 2_500_000
    json.dumps(answer)


def test_markup_in_names_is_text_in_the_figure() -> None:
    trace = make_trace(
        [event("<script>", 0, 10, line=("<i>.py", 2))], allocations=[{"time_ns": 5, "nbytes": 64, "event": 0}]
    )
    curve, peak = memory(trace).data

    assert list(peak.text) == ["peak 64 B by &lt;script&gt;, &lt;i&gt;.py:2"]
    assert "<script" not in curve.hovertext[0]
