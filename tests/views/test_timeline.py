"""The timeline: what is drawn where, at which level, with exact numbers on hand-made traces."""

import json

import numpy as np
import pytest
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.analysis.families import FAMILIES
from mtprof_nb.analysis.lod import LIMIT
from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.views.charts.timeline_tab import TimelineTab, arranged, busy_shares, timeline
from mtprof_nb.views.scene import Scene

BLUE, GREY = FAMILIES[0].colour, FAMILIES[9].colour


def drawn(picture: dict, name: str) -> dict:
    return next(trace for trace in picture["data"] if trace["name"] == name)


def picture(trace: Trace, pixels: int = 1_000, **options: object) -> dict:
    chart = arranged(trace)
    return chart.picture(*chart.whole_ns, pixels, **options)


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


def test_an_event_is_a_bar_from_its_start_as_long_as_it_took(trace: Trace) -> None:
    bars = drawn(picture(trace), "events")

    assert bars["base"] == [0.0, 0.0001, 0.0005, 0.00015, 0.0]
    assert bars["x"] == [0.001, 0.0003, 0.0001, 0.0002, 0.0007]
    assert bars["width"] == [0.88] * 5
    assert [FAMILIES[code].colour for code in (10, 0, 6, 0, 5)] == bars["marker"]["color"]
    assert bars["marker"]["line"] == {"width": 0}, "an outline would make a bar longer"
    # The scope, the ops in it, and the other thread stand below one another.
    assert bars["y"][1] == bars["y"][2]
    assert bars["y"][0] < bars["y"][1] < bars["y"][3] < bars["y"][4]


def test_the_hover_tells_what_was_recorded(trace: Trace) -> None:
    texts = drawn(picture(trace), "events")["hovertext"]

    assert texts[1] == (
        "<b>aten::linear</b><br>300 µs (self 100 µs), at 100 µs<br>forward, step 0<br>inputs [2, 3]<br>m.py:7"
    )
    assert texts[2] == "<b>SumBackward0</b><br>100 µs, at 500 µs<br>backward, step 1"


def test_the_self_time_of_an_op_has_the_python_that_it_calls_and_a_python_function_has_its_own() -> None:
    rows = [
        event("Custom", 0, 100_000),
        event("f.py(1): f", 20_000, 80_000, kind="python"),
        event("mm", 30_000, 40_000),
    ]
    trace = make_trace(rows)
    chart = arranged(trace, python=True)
    texts = drawn(chart.picture(*chart.whole_ns, 1_000), "events")["hovertext"]

    assert [text.split("<br>")[1] for text in texts] == [
        "100 µs (self 90.0 µs), at 0 µs",
        "60.0 µs (self 50.0 µs), at 20.0 µs",
        "10.0 µs, at 30.0 µs",
    ]


def test_the_hover_of_a_backward_op_names_the_line_of_its_forward_op() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 100, line=("m.py", 1)),
            event("MmBackward0", 200, 300, line=("m.py", 2), phase="backward", forward=0),
        ]
    )

    assert [text.rpartition("<br>")[2] for text in drawn(picture(trace), "events")["hovertext"]] == ["m.py:1"] * 2


def test_the_hover_names_the_innermost_line_of_the_user_in_a_stack() -> None:
    stack = [("/usr/site-packages/torch/nn.py", 5, "forward"), ("m.py", 3, "run"), ("m.py", 9, "<module>")]
    (text,) = drawn(picture(make_trace([event("aten::mm", 0, 100, stack=stack)])), "events")["hovertext"]

    assert text.rpartition("<br>")[2] == "m.py:3"


def test_the_hover_of_a_kernel_or_an_async_event_speaks_of_no_self_time() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 900),
            event("request", 100, 400, kind="scope", is_async=True),
            event("gemm", 200, 500, kind="kernel", device="CUDA"),
        ]
    )
    texts = drawn(picture(trace), "events")["hovertext"]

    assert [text.split("<br>")[1] for text in texts] == [
        "0.900 µs, at 0 µs",
        "0.300 µs, at 0.100 µs",
        "0.300 µs, at 0.200 µs",
    ]


def test_a_bar_is_clicked_as_its_event(trace: Trace) -> None:
    clicked = drawn(picture(trace), "events")["customdata"]

    assert [trace.names[trace.name[number]] for number, _ in clicked] == [
        "train",
        "aten::linear",
        "SumBackward0",
        "aten::mm",
        "aten::add",
    ]
    assert all(trace.name[number] == name for number, name in clicked)


def test_merged_events_fill_as_much_of_their_row_as_of_their_time() -> None:
    # Nine events of 10 ns, 20 ns apart: one block of 250 ns that is 90 ns busy.
    rows = [event("aten::mm", at * 30, at * 30 + 10) for at in range(9)]
    trace = make_trace([*rows, event("aten::add", 400_000, 1_000_000)], began_ns=0, ended_ns=1_000_000)
    bars = drawn(picture(trace, pixels=100), "events")

    assert (bars["base"], bars["x"]) == ([0.0, 0.0004], [2.5e-7, 0.0006])
    assert bars["width"] == [round(0.88 * 90 / 250, 4), 0.88]
    assert bars["hovertext"][0] == (
        "<b>9 events</b>, 0.090 µs in 0.250 µs<br>matrix product: 9 events, 0.090 µs<br>"
        "longest aten::mm, 0.010 µs<br>zoom in to tell them apart"
    )


def test_a_block_of_many_events_is_divided_by_family_in_proportion_to_time() -> None:
    work = [event("aten::mm", at * 100, at * 100 + 60) for at in range(8)]
    rest = [event("aten::add", at * 100 + 60, at * 100 + 80) for at in range(8)]
    trace = make_trace([*work, *rest, event("aten::sum", 900_000, 1_000_000)], began_ns=0, ended_ns=1_000_000)
    bars = drawn(picture(trace, pixels=100), "events")

    assert bars["marker"]["color"][:2] == [FAMILIES[0].colour, FAMILIES[5].colour]
    assert bars["width"][:2] == [round(0.88 * 480 / 780, 4), round(0.88 * 160 / 780, 4)]
    assert bars["base"][:2] == [0.0, 0.0]
    # One on top of the other, from the bottom of the row.
    low, high = bars["y"][:2]
    assert low - high == pytest.approx((bars["width"][0] + bars["width"][1]) / 2, abs=1e-3)
    assert low + bars["width"][0] / 2 == pytest.approx(arranged(trace).row_y(np.array([0]))[0] + 0.44, abs=1e-3)


def test_an_event_under_a_pixel_is_marked_and_keeps_its_true_length() -> None:
    trace = make_trace([event("aten::mm", 0, 1_000_000, thread=1), event("aten::add", 5_000, 5_001, thread=2)])
    drawing = picture(trace)

    assert drawn(drawing, "events")["x"] == [0.001, 1e-9]
    assert drawn(drawing, "shorter than a pixel")["x"] == [5e-6]


def test_names_stand_in_the_blocks_that_have_room(trace: Trace) -> None:
    wide, narrow = drawn(picture(trace), "names"), drawn(picture(trace, pixels=130), "names")

    assert wide["text"] == ["train", "linear", "SumBackward0", "mm", "add"]
    assert narrow["text"] == ["train", "line…", "mm", "add"]


def test_a_long_block_has_its_name_where_it_is_visible(trace: Trace) -> None:
    chart = arranged(trace)
    names = drawn(chart.picture(0, 1_000_000, 4_000, window=(200_000, 300_000)), "names")

    assert names["x"] == [0.00025, 0.00025, 0.00025, 0.00025]
    assert "SumBackward0" not in names["text"]


def test_phases_are_told_apart_by_pattern_and_name(trace: Trace) -> None:
    phases = drawn(picture(trace), "phases")

    assert phases["base"] == [0.0001, 0.0005, 0.0]
    assert phases["x"] == [0.0003, 0.0001, 0.0007]
    assert phases["marker"]["pattern"]["shape"] == ["", "/", ""]
    assert drawn(picture(trace), "phase names")["text"] == ["forward", "backward", "forward"]


def test_a_trace_of_one_phase_has_no_ribbon() -> None:
    trace = make_trace([event("aten::mm", 0, 100), event("aten::add", 200, 300)])

    assert drawn(picture(trace), "phases")["base"] == []


def test_selected_events_stay_and_the_others_are_dimmed(trace: Trace) -> None:
    chosen = np.array([trace.names[name] == "aten::mm" for name in trace.name])
    drawing = picture(trace, chosen=chosen)

    assert drawn(drawing, "events")["marker"]["opacity"] == [0.16, 0.16, 0.16, 1.0, 0.16]
    assert drawn(drawing, "names")["text"] == ["mm"]


def test_steps_are_marked_where_they_begin(trace: Trace) -> None:
    layout = picture(trace)["layout"]

    assert [note["text"] for note in layout["annotations"]] == ["step 0", "step 1"]
    assert [note["x"] for note in layout["annotations"]] == [0.0, 0.0005]
    assert layout["yaxis"]["ticktext"] == ["thread 1", "thread 2"]


def test_a_long_trace_is_drawn_in_at_most_two_thousand_bars_that_hold_every_event() -> None:
    trace = training_run(40_000)
    drawing = picture(trace)

    assert len(drawn(drawing, "events")["base"]) <= LIMIT
    assert drawing["blocks"].count.sum() == len(trace)
    assert drawing["blocks"].time_ns.sum() == trace.duration_ns.sum()


def test_the_figure_is_plotlys_and_holds_what_was_drawn(trace: Trace) -> None:
    figure = timeline(trace)

    assert type(figure).__name__ == "Figure"
    assert [trace.name for trace in figure.data][2] == "events"
    assert list(figure.data[2].base) == [0.0, 0.0001, 0.0005, 0.00015, 0.0]
    assert figure.layout.barmode == "overlay"


def test_names_with_markup_are_text_in_hovers_labels_and_lanes() -> None:
    name = "<script>alert(1)</script>"
    drawing = picture(make_trace([event(name, 0, 1_000_000, line=("<b>.py", 1))]))

    assert drawn(drawing, "events")["hovertext"][0].startswith("<b>&lt;script&gt;alert(1)&lt;/script&gt;</b>")
    assert "&lt;b&gt;.py:1" in drawn(drawing, "events")["hovertext"][0]
    assert drawn(drawing, "names")["text"] == ["&lt;script&gt;alert(1)&lt;/script&gt;"]


def test_a_long_name_in_a_block_stays_on_its_line() -> None:
    names = drawn(picture(make_trace([event("n" * 100, 0, 1_000_000)])), "names")

    assert names["text"] == ["n" * 100]


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

    assert whole["held"] == len(trace)
    assert whole["drawn"] < whole["held"]
    assert part["drawn"] == part["held"], "nothing is merged so near"
    assert part["picture"]["layout"]["xaxis"]["range"] == [0.01, 0.0104]
    json.dumps(part)


def test_an_empty_trace_says_so_and_draws_an_empty_figure() -> None:
    assert "Nothing was recorded" in TimelineTab(Scene(empty_trace())).first()["empty"]
    assert len(timeline(empty_trace()).data[2].base) == 0


def test_frames_that_are_not_drawn_do_not_lengthen_the_recording() -> None:
    rows = [event("mm", 20, 80), event("cell", 5, 130, kind="python")]
    trace = make_trace(rows, began_ns=10, ended_ns=100)

    assert arranged(trace).whole_ns == (10, 100)
    assert arranged(trace, True).whole_ns == (5, 130)
