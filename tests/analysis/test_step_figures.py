"""Steps: their time by phase, the median, and in what slow ones differ."""

from dataclasses import replace
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.model.trace import Collections, Trace
from mtprof_nb.recording import Recording
from mtprof_nb.tables.step_table import NO_STEPS, Steps
from mtprof_nb.views.panel.tabs import tabs_of
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.static_page import html, text
from mtprof_nb.views.tabs.steps.steps_tab import MOST_BARS, StepsTab

MS = 1_000_000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _steps(*lengths: tuple[int, int], **line: Any) -> Trace:
    """Steps of so many milliseconds in a forward op, and so many outside ops."""
    rows, at = [], 0
    for step, (in_op, outside) in enumerate(lengths):
        rows.append(event("aten::mm", at * MS, (at + in_op) * MS, step=step, **line))
        at += in_op + outside
    return make_trace(rows, ended_ns=at * MS)


def test_each_step_divides_into_phases_and_time_outside_ops() -> None:
    rows = list(Steps(_steps((6, 4), (8, 2))))

    assert [(row.number, row.start_ns, row.duration_ns) for row in rows] == [(0, 0, 10 * MS), (1, 10 * MS, 10 * MS)]
    assert [(row.forward_ns, row.outside_ns, row.ops) for row in rows] == [(6 * MS, 4 * MS, 1), (8 * MS, 2 * MS, 1)]


def test_a_slow_step_tells_what_takes_longer_than_in_the_median_step() -> None:
    steps = Steps(_steps((6, 4), (6, 4), (26, 4), (6, 24), line=("/data/train.py", 3)))

    assert steps.median_ns == 20 * MS
    assert [(row.number, row.differs) for row in steps.slow] == [
        (2, "train.py:3 takes 26.0 ms instead of 6.00 ms"),
        (3, "outside ops takes 24.0 ms instead of 4.00 ms"),
    ]
    assert repr(steps).splitlines()[0] == "4 steps; median 20.0 ms, 80 % of them from 10.0 ms to 30.0 ms"


def test_collections_in_a_slow_step_are_told_apart_from_other_time_outside_ops() -> None:
    collections = Collections(start_ns=[5 * MS, 22 * MS], duration_ns=[MS, 15 * MS], generation=[0, 2], track=[0, 0])
    steps = Steps(replace(_steps((1, 9), (1, 9), (1, 25), (1, 9)), collections=collections))

    assert [(row.number, row.differs) for row in steps.slow] == [
        (2, "garbage collection takes 15.0 ms instead of 500 µs")
    ]


def test_a_collection_inside_an_op_is_time_of_the_op() -> None:
    collections = Collections(start_ns=[21 * MS], duration_ns=[15 * MS], generation=[2], track=[0])
    trace = _steps((1, 9), (1, 9), (21, 9), (1, 9), line=("train.py", 3))

    assert [row.differs for row in Steps(replace(trace, collections=collections)).slow] == [
        "train.py:3 takes 21.0 ms instead of 1.00 ms"
    ]


def test_a_collection_inside_the_dataloader_hides_no_other_time_outside_ops() -> None:
    collections = Collections(start_ns=[25 * MS], duration_ns=[20 * MS], generation=[2], track=[0])
    rows = [event("aten::mm", at * MS, (at + 1) * MS, step=step) for step, at in enumerate((0, 10, 20, 80))]
    call = event(LOADER, 22 * MS, 47 * MS, step=2, kind="scope")
    trace = make_trace([*rows, call], began_ns=0, ended_ns=90 * MS, collections=collections)

    assert [row.differs for row in Steps(trace).slow] == [
        "DataLoader's next takes 25.0 ms instead of 0 µs; outside ops takes 34.0 ms instead of 9.00 ms"
    ]


def test_the_text_and_the_page_without_scripts_have_the_median_the_spread_and_the_slow_steps() -> None:
    scene = Scene(_steps((6, 4), (6, 4), (26, 4), (6, 4), line=("<b>.py", 3)))
    told = [
        "4 steps; median 10.0 ms, 80 % of them from 10.0 ms to 30.0 ms",
        "step 2: 30.0 ms; <b>.py:3 takes 26.0 ms instead of 6.00 ms",
    ]

    lines = text(scene).splitlines()
    assert lines[lines.index(told[0]) :][:2] == told
    assert "".join(f"<div>{line.replace('<b>', '&lt;b&gt;')}</div>" for line in told) in html(scene)
    bare = Scene(make_trace([event("aten::mm", 0, MS)]))
    assert "step" not in text(bare)
    assert "Steps" not in html(bare)


def test_without_lines_ops_differ_and_equal_steps_do_not() -> None:
    (slow,) = Steps(_steps((1, 0), (1, 0), (1, 0), (9, 0))).slow

    assert slow.differs == "aten::mm takes 9.00 ms instead of 1.00 ms"
    assert Steps(_steps((5, 5), (6, 5), (5, 6))).slow == []


def test_without_marked_steps_there_is_no_row_and_no_tab() -> None:
    bare = make_trace([event("aten::mm", 0, MS)])

    assert (len(Steps(bare)), Steps(bare).median_ns, repr(Steps(bare))) == (0, None, NO_STEPS)
    assert "steps" not in [kind.name for kind in tabs_of(Scene(bare))]
    assert "steps" in [kind.name for kind in tabs_of(Scene(_steps((1, 0), (1, 0))))]
    assert set(StepsTab(Scene(bare)).first()) == {"empty"}


def test_the_tab_has_a_bar_for_each_step_and_the_longest_of_several_if_there_are_many() -> None:
    few = StepsTab(Scene(_steps((6, 4), (6, 4), (26, 4), line=("train.py", 3)))).first()
    many = StepsTab(Scene(_steps(*[(1, 0)] * MOST_BARS, *[(2, 0)] * MOST_BARS))).first()

    assert (few["number"], few["median_ns"], few["thinned"]) == ([0, 1, 2], 10 * MS, False)
    assert few["parts"] == {"forward": [6 * MS, 6 * MS, 26 * MS], "outside ops": [4 * MS] * 3}
    assert few["slow"] == [
        {
            "number": 2,
            "duration_ns": 30 * MS,
            "differences": [{"id": 0, "location": "train.py:3", "ns": 26 * MS, "usual_ns": 6 * MS}],
        }
    ]
    assert (len(many["number"]), many["thinned"]) == (MOST_BARS, True)


def test_steps_are_a_table_too() -> None:
    pytest.importorskip("pandas")
    frame = Recording(_steps((6, 4), (8, 2))).steps().to_dataframe()

    columns = frame[["number", "duration_ns", "forward_ns"]].to_numpy().tolist()
    assert columns == [[0, 10 * MS, 6 * MS], [1, 10 * MS, 8 * MS]]
