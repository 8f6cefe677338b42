"""Stacks: which slices are drawn, that they conserve every total, and what each says."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.analysis.costs import averaged_costs, in_ops_ns
from mtprof_nb.analysis.stacks.calltree import call_tree
from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.stacks.stack_figures import icicle, sunburst
from mtprof_nb.views.tabs.stacks.stack_slices import slices
from mtprof_nb.views.tabs.stacks.stacks_tab import FILLS, StacksTab, stack_chart


@pytest.fixture
def nested() -> Trace:
    return make_trace(
        [
            event("train", 0, 1_000, kind="scope"),
            event("aten::linear", 0, 600),
            event("aten::mm", 100, 500),
            event("aten::add", 700, 900),
        ]
    )


@pytest.fixture
def framed() -> Trace:
    top, run, deep = ("a/f.py", 9, "main"), ("a/f.py", 3, "run"), ("a/g.py", 5, "deep")
    return make_trace(
        [
            event("aten::mm", 0, 300, stack=[deep, run, top]),
            event("aten::add", 400, 500, stack=[run, top]),
        ]
    )


def drawn(trace: Trace, metric: str = "self") -> dict:
    return stack_chart(trace).chart(metric)["slices"]


def hovers(trace: Trace, metric: str = "self") -> list[str]:
    """The hover texts of the figure's slices."""
    return list(icicle(trace, metric).data[0].hovertext)


def test_without_stacks_scopes_and_ops_are_drawn_as_they_nested(nested: Trace) -> None:
    chart = drawn(nested)

    assert chart["label"] == ["all", "train", "linear", "add", "mm"]
    assert chart["parent"] == [-1, 0, 1, 1, 2]
    assert chart["total"] == [1_000, 1_000, 600, 200, 400]
    assert chart["fill"][1:] == [10, 0, 5, 0]
    assert chart["own"] == [0, 200, 200, 200, 400]
    assert hovers(nested)[2] == "<b>aten::linear</b><br>0.600 µs self time, 60.0 % of all<br>0.200 µs of it its own"


def test_frames_that_call_everything_are_told_at_the_root_and_leave_the_room_to_others(framed: Trace) -> None:
    chart = drawn(framed)

    assert chart["label"] == ["run", "deep  g.py:5", "add", "mm"]
    assert chart["parent"] == [-1, 0, 0, 1]
    assert chart["total"] == [400, 300, 100, 300]
    assert stack_chart(framed).chart()["called_by"] == ["main, a/f.py:9"]
    assert hovers(framed)[0].endswith("<br>called by main, a/f.py:9")
    assert chart["full"][1] == "deep, a/g.py:5"


def test_frames_that_only_pass_a_call_on_are_left_out_unless_everything_is_to_be_shown() -> None:
    library = "/usr/lib/site-packages/torch/nn/modules/"
    mine, passed = ("net.py", 9, "forward"), (f"{library}module.py", 1_778, "_wrapped_call_impl")
    linear = (f"{library}linear.py", 134, "forward")
    trace = make_trace(
        [event("aten::addmm", 0, 10, stack=[linear, passed, mine]), event("aten::add", 20, 30, stack=[mine])]
    )
    chart = drawn(trace)

    assert chart["label"] == ["forward", "forward  linear.py:134", "add", "addmm"]
    assert [FILLS[fill].title for fill in chart["fill"][:2]] == ["scope", "library code"], "mine, and the library's"
    assert len(stack_chart(trace, python=True).chart()["slices"]["label"]) == 5


@pytest.fixture
def plumbed() -> Trace:
    """A function of the user that a library calls three frames deep, and which calls another library."""
    lightning, torch = "/usr/lib/site-packages/lightning/", "/usr/lib/site-packages/torch/"
    main, step = ("train.py", 9, "main"), ("train.py", 3, "step")
    fit = [(f"{lightning}loop.py", 7, "run"), (f"{lightning}trainer.py", 5, "fit"), main]
    backward = [(f"{torch}autograd.py", 2, "run"), (f"{torch}tensor.py", 1, "backward"), step, *fit]
    return make_trace(
        [
            event("aten::mm", 0, 400, stack=backward),
            event("aten::add", 500, 600, stack=[step, *fit]),
            event("aten::mm", 700, 730, stack=fit),
            event("aten::mm", 740, 750, stack=fit[1:]),
            event("aten::sub", 800, 900, stack=[("/usr/lib/python3.11/copy.py", 3, "copy"), main]),
        ]
    )


def outline(chart: dict) -> set[tuple[str, str, int]]:
    """Each slice with its caller and its total."""
    labels = chart["label"]
    rows = zip(chart["parent"], labels, chart["total"], strict=True)
    return {(labels[above] if above >= 0 else "", *rest) for above, *rest in rows}


def test_frames_of_a_library_are_folded_into_one_slice_with_their_number(plumbed: Trace) -> None:
    chart = stack_chart(plumbed, False, True).chart()["slices"]

    assert outline(chart) == {
        ("", "main", 640),
        ("main", "lightning (2 frames)", 540),
        ("main", "copy  copy.py:3", 100),
        ("lightning (2 frames)", "mm", 40),
        ("lightning (2 frames)", "step  train.py:3", 500),
        ("step  train.py:3", "torch (2 frames)", 400),
        ("step  train.py:3", "add", 100),
        ("torch (2 frames)", "mm", 400),
        ("copy  copy.py:3", "sub", 100),
    }
    assert "<b>2 frames of lightning</b>" in hovers(plumbed)[chart["label"].index("lightning (2 frames)")]
    assert "fit  trainer.py:5" in icicle(plumbed, fold_libraries=False).data[0].labels


def test_a_page_folds_libraries_as_python_does(plumbed: Trace) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    open_chart = stack_chart(plumbed).chart()
    ran = subprocess.run(
        [node, "tests/web/folded_slices.js"],
        input=json.dumps(open_chart),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=True,
    )

    assert outline(json.loads(ran.stdout)) == outline(stack_chart(plumbed, False, True).chart()["slices"])
    assert len(open_chart["slices"]["label"]) > len(json.loads(ran.stdout)["label"])


def test_folded_frames_leave_the_room_to_others() -> None:
    library = [(f"/usr/lib/site-packages/deep/f{number}.py", 1, "f") for number in range(30)]
    rows = [
        event(f"op{number}", number * 10, number * 10 + 5, stack=[("mine.py", number + 1, "f"), *library])
        for number in range(50)
    ]
    tree_total = drawn(make_trace([*rows, event("other", 900, 1_000, stack=[])]))

    assert sum(label.startswith("op") for label in tree_total["label"]) == 50


def test_slices_are_sized_by_count_memory_or_device_time(nested: Trace) -> None:
    memory = make_trace([event("aten::mm", 0, 10)], allocations=[{"time_ns": 5, "nbytes": 4_096, "event": 0}])
    device = make_trace([event("aten::mm", 0, 10), event("k", 5, 8, kind="kernel", device="CUDA", launcher=0)])

    assert drawn(nested, "count")["total"] == [4, 4, 2, 1, 1]
    assert drawn(memory, "memory")["total"] == [4_096, 4_096]
    assert "4.00 KiB allocated memory" in hovers(memory, "memory")[1]
    assert drawn(device, "device")["total"] == [3, 3]


def test_allocated_memory_is_counted_whatever_was_released_since() -> None:
    trace = make_trace(
        [event("aten::linear", 0, 100), event("aten::mm", 10, 60), event("aten::mm", 20, 50)],
        allocations=[
            {"time_ns": 5, "nbytes": 256, "event": 0},
            {"time_ns": 15, "nbytes": 64, "event": 1},
            {"time_ns": 30, "nbytes": 4_096, "event": 2},
            {"time_ns": 70, "nbytes": -256, "event": 0},
        ],
    )

    assert drawn(trace, "memory")["label"] == ["all", "linear", "mm"]
    assert drawn(trace, "memory")["total"] == [4_416, 4_416, 4_160]


def test_python_code_that_an_op_calls_counts_for_the_op() -> None:
    mine, called = ("f.py", 9, "train"), ("f.py", 3, "backward")
    trace = make_trace(
        [
            event("MineBackward", 0, 100, stack=[mine]),
            event("f.py(3): backward", 10, 90, kind="python", stack=[mine]),
            event("aten::mul", 40, 60, stack=[called, mine]),
        ]
    )
    chart = drawn(trace)

    assert chart["total"][0] == in_ops_ns(trace) == 100
    assert dict(zip(chart["label"], chart["total"], strict=True)) == {
        "train": 100,
        "MineBackward": 80,
        "backward  f.py:3": 20,
        "mul": 20,
    }
    assert stack_chart(trace, python=True).own("self").sum() == 100


def test_a_metric_that_was_not_recorded_says_how_to_record_it(nested: Trace) -> None:
    with pytest.raises(ValueError, match="no stacks by 'memory': record it with --profile-memory, or use one of self"):
        sunburst(nested, metric="memory")
    with pytest.raises(ValueError, match="no stacks by 'speed': use one of self, count"):
        icicle(nested, metric="speed")
    with pytest.raises(ValueError, match="the recording has no stacks, for it has no events"):
        sunburst(empty_trace())


def test_small_slices_are_folded_into_one_that_says_how_many() -> None:
    rows = [event("big", 0, 100_000)]
    rows += [event(f"small{number}", 100_000 + number * 10, 100_004 + number * 10) for number in range(30)]
    trace = make_trace(rows)
    chart = drawn(trace)

    assert chart["label"] == ["all", "big", "other (30)"]
    assert chart["total"] == [100_120, 100_000, 120]
    assert chart["folded"] == [0, 0, 30]
    assert hovers(trace)[2].startswith("<b>30 small slices</b>")


@pytest.mark.parametrize("most", [1, 2, 5, 400])
def test_however_few_slices_every_caller_holds_its_callees(most: int) -> None:
    trace = training_run(3_000)
    tree = call_tree(trace)
    own = tree.own(averaged_costs(trace).self_ns)
    cut = slices(tree, tree.with_callees(own), most)

    assert (cut.node >= 0).sum() <= most
    inside = np.zeros(len(cut), np.int64)
    np.add.at(inside, cut.parent[1:], cut.total[1:])
    of_node = np.where(cut.node >= 0, own[cut.node], 0)
    has_callees = inside > 0
    assert np.array_equal((inside + of_node)[has_callees], cut.total[has_callees])
    assert cut.total[0] == own.sum()


def test_many_equal_slices_are_still_bounded() -> None:
    trace = make_trace([event(f"op{number}", number * 10, number * 10 + 5) for number in range(3_000)])
    chart = drawn(trace)

    assert len(chart["label"]) <= 401
    assert sum(chart["total"][1:]) == chart["total"][0] == 15_000


def test_each_row_has_the_slices_of_its_events(nested: Trace) -> None:
    # The rows: aten::linear, aten::mm, aten::add. The slices: all, train, linear, add, mm.
    lit = StacksTab(Scene(nested)).answer({"ask": "lit", "metric": "self", "grouping": "op"})

    assert lit == {"own": {"row": [0, 1, 2], "of": [2, 4, 3]}, "below": {"row": [], "of": []}}


def test_a_row_whose_events_are_not_drawn_has_the_slice_above_them() -> None:
    trace = make_trace([event("aten::linear", 0, 10_000), event("aten::view", 10, 15), event("aten::mm", 20, 9_000)])
    lit = StacksTab(Scene(trace)).answer({"ask": "lit", "metric": "self", "grouping": "op"})

    assert drawn(trace)["label"] == ["all", "linear", "mm", "other (1)"]
    assert lit == {"own": {"row": [0, 2], "of": [1, 2]}, "below": {"row": [1], "of": [1]}}


def test_a_selected_line_has_the_slices_of_its_ops() -> None:
    trace = make_trace([event("aten::mm", 0, 10, line=("a.py", 1)), event("aten::add", 10, 20, line=("a.py", 2))])
    lit = StacksTab(Scene(trace)).answer({"ask": "lit", "metric": "count", "grouping": "source"})

    assert lit == {"own": {"row": [0, 1], "of": [1, 2]}, "below": {"row": [], "of": []}}
    assert drawn(trace)["line"] == [-1, 0, 1]


def test_a_slice_is_clicked_as_an_event_and_a_frame_as_none(framed: Trace) -> None:
    chart = drawn(framed)

    assert [framed.names[name] if name >= 0 else None for name in chart["name"]] == [
        *(None, None, "aten::add", "aten::mm")
    ]
    assert chart["event"] == [-1, -1, 1, 0]


def test_the_figures_are_plotlys(nested: Trace) -> None:
    assert sunburst(nested).data[0].type == "sunburst"
    assert icicle(nested).data[0].type == "icicle"
    assert list(icicle(nested).data[0]["values"]) == [1_000, 1_000, 600, 200, 400]


def test_markup_in_names_is_text_in_the_figure() -> None:
    trace = make_trace([event("<script>", 0, 10, stack=[("<i>.py", 1, "<b>")]), event("x", 20, 30, stack=[])])
    figure = icicle(trace).data[0]

    assert "&lt;b&gt;  &lt;i&gt;.py:1" in figure.labels
    assert "&lt;script&gt;" in figure.labels
    assert not any("<script" in text or "<i>" in text for text in figure.hovertext)


def test_the_tab_names_the_flag_for_source_frames_and_says_when_there_is_nothing(nested: Trace, framed: Trace) -> None:
    assert "--with-stack" in StacksTab(Scene(nested)).first()["note"]
    assert StacksTab(Scene(framed)).first()["note"] == ""
    assert [metric["key"] for metric in StacksTab(Scene(nested)).first()["metrics"]] == ["self", "count"]
    assert "Nothing was recorded" in StacksTab(Scene(empty_trace())).first()["empty"]
