"""The timeline: what is drawn where, at which level, with exact numbers on hand-made traces."""

import json

import numpy as np
import pytest
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.analysis.lod import LIMIT
from mtprof_nb.model.trace import Collections, Trace, empty_trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.timeline.timeline_blocks import arranged
from mtprof_nb.views.tabs.timeline.timeline_figure import timeline
from mtprof_nb.views.tabs.timeline.timeline_tab import TimelineTab, busy_shares


def window(trace: Trace, pixels: int = 1_000, **options: object) -> dict:
    chart = arranged(trace)
    return chart.window(*chart.whole_ns, pixels, **options)


def hovers(trace: Trace) -> list[str]:
    """The hover texts of the events of the figure."""
    return list(timeline(trace).data[1].hovertext)


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [
            event("train", 0, 1_000_000, kind="scope", line=("t.py", 4)),
            event("aten::linear", 100_000, 400_000, line=("m.py", 7), shapes=((2, 3),)),
            event("aten::mm", 150_000, 350_000, line=("m.py", 7), shapes=((2, 3), (3, 4))),
            event("SumBackward0", 500_000, 600_000, phase="backward", step=1),
            event("aten::add", 0, 700_000, thread=2),
        ],
        began_ns=0,
        ended_ns=1_000_000,
    )


def test_an_event_is_a_block_from_its_start_as_long_as_it_took(trace: Trace) -> None:
    drawn = window(trace)
    blocks, bars = drawn["blocks"], drawn["bars"]

    assert blocks["start_ns"] == [0, 100_000, 500_000, 150_000, 0]
    assert blocks["length_ns"] == [1_000_000, 300_000, 100_000, 200_000, 700_000]
    assert blocks["count"] == [1] * 5
    assert blocks["row"] == [0, 1, 1, 2, 3], "the scope, the ops in it, and the other thread stand below one another"
    assert (bars["block"], bars["family"]) == ([0, 1, 2, 3, 4], [10, 0, 6, 0, 5])


def test_a_block_tells_facts_of_its_event(trace: Trace) -> None:
    drawn = window(trace)
    bars, texts = drawn["bars"], drawn["texts"]

    assert [bars[key][1] for key in ("took_ns", "self_ns", "phase", "step")] == [300_000, 100_000, 0, 0]
    assert [bars[key][2] for key in ("took_ns", "self_ns", "phase", "step")] == [100_000, 100_000, 1, 1]
    assert [texts["names"][name] for name in bars["name"]] == [
        *("train", "aten::linear", "SumBackward0", "aten::mm", "aten::add")
    ]
    assert [trace.name[event] for event in bars["event"]] == bars["name"]
    assert [texts["lines"].get(line) for line in bars["line"]] == ["t.py:4", "m.py:7", None, "m.py:7", None]
    inputs = [texts["shapes"].get(shape) for shape in bars["shape"]]
    assert inputs == [None, "[2, 3] float32", None, "[2, 3] float32, [3, 4] float32", None]


def test_lanes_stand_below_one_another_with_room_for_phases(trace: Trace) -> None:
    main, other = arranged(trace).lane_rows()

    assert main == {"title": "thread 1", "top": 0.0, "rows_top": 0.85, "bottom": 3.85, "rows": 3}
    assert other["rows"] == 1
    assert [other["top"], other["rows_top"], other["bottom"]] == pytest.approx([4.55, 5.4, 6.4])


def test_the_self_time_of_an_op_has_the_python_that_it_calls_and_a_python_function_has_its_own() -> None:
    rows = [
        event("Custom", 0, 100_000),
        event("f.py(1): f", 20_000, 80_000, kind="python"),
        event("mm", 30_000, 40_000),
    ]
    trace = make_trace(rows)
    chart = arranged(trace, python=True)

    assert chart.window(*chart.whole_ns)["bars"]["self_ns"] == [90_000, 50_000, 10_000]


def test_the_hover_of_the_figure_tells_what_was_recorded(trace: Trace) -> None:
    texts = hovers(trace)

    assert texts[1] == (
        "<b>aten::linear</b><br>300 µs (self 100 µs), at 100 µs<br>forward, step 0<br>inputs [2, 3] float32<br>m.py:7"
    )
    assert texts[2] == "<b>SumBackward0</b><br>100 µs, at 500 µs<br>backward, step 1"


def test_the_hover_of_a_backward_op_names_the_line_of_its_forward_op() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 100, line=("m.py", 1)),
            event("MmBackward0", 200, 300, line=("m.py", 2), phase="backward", forward=0),
        ]
    )

    assert [text.rpartition("<br>")[2] for text in hovers(trace)] == ["m.py:1"] * 2


def test_the_hover_names_the_innermost_line_of_the_user_in_a_stack() -> None:
    stack = [("/usr/site-packages/torch/nn.py", 5, "forward"), ("m.py", 3, "run"), ("m.py", 9, "<module>")]
    (text,) = hovers(make_trace([event("aten::mm", 0, 100, stack=stack)]))

    assert text.rpartition("<br>")[2] == "m.py:3"


def test_the_hover_of_a_kernel_or_an_async_event_speaks_of_no_self_time() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 900),
            event("request", 100, 400, kind="scope", is_async=True),
            event("gemm", 200, 500, kind="kernel", device="CUDA"),
        ]
    )
    texts = hovers(trace)

    assert [text.split("<br>")[1] for text in texts] == [
        "0.900 µs, at 0 µs",
        "0.300 µs, at 0.100 µs",
        "0.300 µs, at 0.200 µs",
    ]


def test_merged_events_are_a_block_that_knows_their_number_and_time() -> None:
    # Nine events of 10 ns, 20 ns apart: one block of 250 ns that is 90 ns busy.
    rows = [event("aten::mm", at * 30, at * 30 + 10) for at in range(9)]
    trace = make_trace([*rows, event("aten::add", 400_000, 1_000_000)], began_ns=0, ended_ns=1_000_000)
    blocks = window(trace, pixels=100)["blocks"]

    assert (blocks["start_ns"], blocks["length_ns"]) == ([0, 400_000], [250, 600_000])
    assert (blocks["count"], blocks["time_ns"]) == ([9, 1], [90, 600_000])
    figure = timeline(trace).data[1]
    assert list(figure.width) == [round(0.88 * 90 / 250, 4), 0.88]
    assert figure.hovertext[0] == (
        "<b>9 events</b>, 0.090 µs in 0.250 µs<br>matrix product: 9 events, 0.090 µs<br>longest aten::mm, 0.010 µs"
    )


def test_a_block_of_many_events_has_a_bar_for_each_family() -> None:
    work = [event("aten::mm", at * 100, at * 100 + 60) for at in range(8)]
    rest = [event("aten::add", at * 100 + 60, at * 100 + 80) for at in range(8)]
    trace = make_trace([*work, *rest, event("aten::sum", 900_000, 1_000_000)], began_ns=0, ended_ns=1_000_000)
    bars = window(trace, pixels=100)["bars"]

    assert (bars["block"], bars["family"]) == ([0, 0, 1], [0, 5, 6])
    assert (bars["count"], bars["time_ns"]) == ([8, 8, 1], [480, 160, 100_000])
    # In the figure one stands on top of the other, from the bottom of the row.
    figure = timeline(trace).data[1]
    (low, high), (lower, upper) = figure.y[:2], figure.width[:2]
    assert low - high == pytest.approx((lower + upper) / 2, abs=1e-3)
    assert low + lower / 2 == pytest.approx(arranged(trace).row_y(np.array([0]))[0] + 0.44, abs=1e-3)


def test_an_event_under_a_pixel_keeps_its_true_length_and_is_marked_in_the_figure() -> None:
    trace = make_trace([event("aten::mm", 0, 1_000_000, thread=1), event("aten::add", 5_000, 5_001, thread=2)])

    assert window(trace)["blocks"]["length_ns"] == [1_000_000, 1]
    assert window(trace)["pixel_ns"] == 1_000.0
    assert list(timeline(trace).data[2].x) == [5e-6]


def test_names_stand_in_the_bars_of_the_figure_that_have_room(trace: Trace) -> None:
    assert list(timeline(trace).data[3].text) == ["train", "linear", "SumBackward0", "mm", "add"]


def test_phases_are_runs_of_the_outermost_ops(trace: Trace) -> None:
    phases = window(trace)["phases"]

    assert phases == {
        "lane": [0, 0, 1],
        "start_ns": [100_000, 500_000, 0],
        "length_ns": [300_000, 100_000, 700_000],
        "phase": [0, 1, 0],
    }
    assert list(timeline(trace).data[0].marker.pattern.shape) == ["", "/", ""]


def test_a_trace_of_one_phase_has_no_ribbon() -> None:
    trace = make_trace([event("aten::mm", 0, 100), event("aten::add", 200, 300)])

    assert window(trace)["phases"]["lane"] == []
    assert arranged(trace).lane_rows()[0]["rows_top"] == 0


def test_blocks_with_selected_events_are_lit(trace: Trace) -> None:
    chosen = np.array([trace.names[name] == "aten::mm" for name in trace.name])

    assert window(trace, chosen=chosen)["blocks"]["lit"] == [False, False, False, True, False]
    assert window(trace)["blocks"]["lit"] is None


def test_steps_are_marked_where_they_begin(trace: Trace) -> None:
    assert window(trace)["steps"] == {"number": [0, 1], "start_ns": [0, 500_000]}
    layout = timeline(trace).layout
    assert [note.text for note in layout.annotations] == ["step 0", "step 1"]
    assert list(layout.yaxis.ticktext) == ["thread 1", "thread 2"]


def test_the_longest_garbage_collections_are_marked_in_the_lanes_of_their_threads() -> None:
    found = Collections(
        start_ns=np.arange(1_000, 501_000, 1_000),
        duration_ns=[9, *[5] * 498, 7],
        generation=[2, *[0] * 498, 1],
        track=[1, -1, *[0] * 498],
    )
    rows = [event("aten::mm", 500, 600, thread=1), event("aten::mm", 700, 800, thread=2)]

    first = TimelineTab(Scene(make_trace(rows, collections=found))).first()["collections"]

    assert {key: column[:3] for key, column in first.items()} == {
        "lane": [1, 0, 0],
        "start_ns": [500, 2_500, 3_500],
        "length_ns": [9, 5, 5],
        "generation": [2, 0, 0],
    }
    assert (len(first["lane"]), first["length_ns"][-1]) == (400, 7)
    assert TimelineTab(Scene(make_trace(rows))).first()["collections"]["lane"] == []


def test_a_long_trace_is_drawn_in_at_most_two_thousand_bars_that_hold_every_event() -> None:
    trace = training_run(40_000)
    drawn = window(trace)

    assert len(drawn["bars"]["block"]) <= LIMIT
    assert sum(drawn["blocks"]["count"]) == len(trace)
    assert sum(drawn["blocks"]["time_ns"]) == trace.duration_ns.sum()


def test_the_figure_is_plotlys_and_holds_what_was_drawn(trace: Trace) -> None:
    figure = timeline(trace)

    assert type(figure).__name__ == "Figure"
    assert [trace.name for trace in figure.data] == ["phases", "events", "shorter than a pixel", "names"]
    assert list(figure.data[1].base) == [0.0, 0.0001, 0.0005, 0.00015, 0.0]
    assert list(figure.data[1].x) == [0.001, 0.0003, 0.0001, 0.0002, 0.0007]
    assert figure.data[1].marker.line.width == 0, "an outline would make a bar longer"
    assert figure.layout.barmode == "overlay"


def test_names_with_markup_are_text_in_the_hovers_and_labels_of_the_figure() -> None:
    name = "<script>alert(1)</script>"
    figure = timeline(make_trace([event(name, 0, 1_000_000, line=("<b>.py", 1))]))

    assert figure.data[1].hovertext[0].startswith("<b>&lt;script&gt;alert(1)&lt;/script&gt;</b>")
    assert "&lt;b&gt;.py:1" in figure.data[1].hovertext[0]
    assert list(figure.data[3].text) == ["&lt;script&gt;alert(1)&lt;/script&gt;"]


def test_a_long_name_in_a_bar_stays_on_its_line() -> None:
    assert list(timeline(make_trace([event("n" * 100, 0, 1_000_000)])).data[3].text) == ["n" * 100]


def test_how_busy_a_part_was_is_told_exactly() -> None:
    trace = make_trace(
        [event("a", 0, 50), event("inner", 10, 20), event("b", 60, 70), event("c", 0, 5, thread=2)], ended_ns=100
    )

    assert busy_shares(trace, 0, 100, bins=4) == [1.0, 1.0, 0.4, 0.0]


def test_how_busy_a_part_was_is_told_exactly_also_at_unix_time() -> None:
    began = 1_763_000_000_000_000_001
    trace = make_trace([event("a", began, began + 50), event("b", began + 60, began + 70)], ended_ns=began + 100)

    assert busy_shares(trace, began, began + 100, bins=4) == [1.0, 1.0, 0.4, 0.0]


def test_a_window_is_answered_with_its_own_detail() -> None:
    trace = training_run(20_000)
    tab = TimelineTab(Scene(trace))
    whole = tab.first()
    part = tab.answer({"ask": "window", "begin_ns": 10_000_000, "end_ns": 10_400_000, "pixels": 900})

    assert len(whole["blocks"]["row"]) < sum(whole["blocks"]["count"]) == len(trace)
    assert set(part["blocks"]["count"]) == {1}, "nothing is merged so near"
    assert part["drawn_ns"] == [9_900_000, 10_500_000], "a quarter of the window more on either side"
    json.dumps(part)


def test_an_empty_trace_says_so_and_draws_an_empty_figure() -> None:
    assert "Nothing was recorded" in TimelineTab(Scene(empty_trace())).first()["empty"]
    assert len(timeline(empty_trace()).data[1].base) == 0


def test_frames_that_are_not_drawn_do_not_lengthen_the_recording() -> None:
    rows = [event("mm", 20, 80), event("cell", 5, 130, kind="python")]
    trace = make_trace(rows, began_ns=10, ended_ns=100)

    assert arranged(trace).whole_ns == (10, 100)
    assert arranged(trace, True).whole_ns == (5, 130)


def test_an_op_that_python_code_of_another_op_calls_is_busy_once() -> None:
    trace = make_trace([event("outer", 0, 80), event("f.py(1): f", 10, 70, kind="python"), event("aten::mm", 20, 60)])

    assert busy_shares(trace, 0, 100, bins=4) == [1.0, 1.0, 1.0, 0.2]
