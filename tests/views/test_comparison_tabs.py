"""Tabs of a comparison: what they send to the page."""

import pytest
from traces import event, make_trace

from mtprof_nb.comparison.alternation import Alternated, TimedBlock
from mtprof_nb.comparison.compared import Compared, of_functions, of_recordings
from mtprof_nb.comparison.measured_points import MOST_POINTS, measured_points
from mtprof_nb.comparison.sides import Side, Sides
from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.views.comparison.comparison_pictures import places, points_svg, scale_of
from mtprof_nb.views.panel.show_comparison import panel
from mtprof_nb.views.panel.show_panel import bundle_of, scene_of
from mtprof_nb.views.panel.tabs import COMPARING, TABS, tabs_of
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.differences.differences_tab import DifferencesTab
from mtprof_nb.views.tabs.side_by_side.side_by_side_tab import SideBySideTab
from mtprof_nb.views.tabs.two_timelines.two_timelines_tab import TwoTimelinesTab, step_pairs


def _training(length: int, steps: int = 3, text: str = "y = slow(x)") -> Trace:
    """Steps that begin every 1,000 ns, with one op of this length."""
    rows = [
        event("aten::mm", 1_000 * step, 1_000 * step + length, step=step, line=("train.py", 1)) for step in range(steps)
    ]
    return make_trace(rows, ended_ns=1_000 * steps, sources={"train.py": text})


def _compared(a: Trace, b: Trace) -> Compared:
    return of_recordings(Sides(Side("before", (a,)), Side("after", (b,))))


@pytest.fixture
def compared() -> Compared:
    return _compared(_training(400), _training(200, text="y = quick(x)"))


@pytest.fixture
def scene(compared: Compared) -> Scene:
    return Scene(compared.sides.b.runs[0], against=compared)


def test_the_table_has_a_row_for_each_difference(scene: Scene) -> None:
    first = DifferencesTab(scene).first()
    rows = first["rows"]

    assert first["labels"] == ["before", "after"]
    assert rows["label"] == ["median step", "wall time", "forward", "y = quick(x)", "aten::mm"]
    assert [first["levels"][at]["title"] for at in rows["family"]] == ["step", "whole", "phase", "line", "op"]
    assert rows["value"]["delta_ns"] == [0, 0, -600, -600, -600]
    assert rows["value"]["ratio"] == [1, 1, 0.5, 0.5, 0.5]
    assert rows["text"]["verdict"] == ["cannot tell"] * 5
    assert rows["text"]["calls"] == ["–", "–", "–", "3", "3"]
    assert rows["small"] == [False] * 5
    assert first["changes"] == [["line y = quick(x) (train.py:1)", "3", "3", "edited"]]


def test_a_row_of_one_side_has_no_number_on_the_other() -> None:
    after = make_trace([event("aten::add", 0, 50)])
    first = DifferencesTab(Scene(after, against=_compared(make_trace([event("aten::mm", 0, 100)]), after))).first()
    row = first["rows"]["label"].index("aten::mm")

    assert (first["rows"]["value"]["a_ns"][row], first["rows"]["value"]["b_ns"][row]) == (100, None)
    assert first["rows"]["value"]["ratio"][row] is None
    assert (first["rows"]["text"]["verdict"][row], first["rows"]["text"]["calls"][row]) == ("gone", "1 → –")


def test_a_point_is_a_step_a_block_or_a_run(compared: Compared) -> None:
    assert measured_points(compared) == ("step", [[1000.0] * 3], [[1000.0] * 3])
    whole = _compared(make_trace([event("aten::mm", 0, 70)]), make_trace([event("aten::mm", 0, 50)]))
    assert measured_points(whole) == ("run", [[70.0]], [[50.0]])
    times = Alternated((2.0, 3.0), (1.0, 1.5), TimedBlock(1, 1), TimedBlock(1, 1), planned=2, seconds=1.0)
    in_turns = of_functions(Sides(Side("f", ()), Side("g", ())), times)
    assert measured_points(in_turns) == ("block of calls", [[2.0, 3.0]], [[1.0, 1.5]])


def test_many_points_are_thinned_and_the_longest_is_kept() -> None:
    lengths = tuple(float(number) for number in range(5_000, 0, -1))
    times = Alternated((9e9, *lengths), (1.0, *lengths), TimedBlock(1, 1), TimedBlock(1, 1), planned=5_001, seconds=1.0)
    found = measured_points(of_functions(Sides(Side("f", ()), Side("g", ())), times))

    assert len(found.a[0]) <= MOST_POINTS
    assert (max(found.a[0]), min(found.b[0])) == (9e9, 1.0)


def test_changed_lines_stand_side_by_side(scene: Scene) -> None:
    first = SideBySideTab(scene).first()

    assert first["largest_ns"] == 1200
    assert first["files"] == [
        {
            "a_title": "train.py",
            "b_title": "train.py",
            "rows": [
                {
                    "a": {"number": 1, "text": "y = slow(x)", "ns": 1200},
                    "b": {"number": 1, "text": "y = quick(x)", "ns": 600},
                    "change": "edited",
                }
            ],
        }
    ]


def test_equal_sources_say_that_nothing_changed() -> None:
    same = _training(400)

    assert "the same in both" in SideBySideTab(Scene(same, against=_compared(same, same))).first()["empty"]


def test_timelines_begin_with_the_step() -> None:
    a, b = _training(400), _training(200)
    tab = TwoTimelinesTab(Scene(b, against=_compared(a, b)))

    assert [step["title"] for step in tab.first()["steps"]] == ["median step", "step 0", "step 1", "step 2"]
    windows = tab.answer({"ask": "window", "step": 3, "begin_ns": 0, "end_ns": 1_000, "pixels": 800})["windows"]
    assert [window["blocks"]["start_ns"] for window in windows] == [[0], [0]]
    assert [window["blocks"]["length_ns"] for window in windows] == [[400], [200]]


def test_nothing_is_drawn_after_the_end_of_a_shorter_step() -> None:
    a = make_trace([event("aten::mm", at, at + 50, step=at // 2_000) for at in (0, 500, 2_000)], ended_ns=4_000)
    b = _training(200)
    tab = TwoTimelinesTab(Scene(b, against=_compared(a, b)))
    windows = tab.answer({"ask": "window", "step": 1, "begin_ns": 0, "end_ns": 2_000, "pixels": 800})["windows"]

    assert tab.first()["steps"][1]["length_ns"] == [2_000, 1_000]
    assert [window["blocks"]["start_ns"] for window in windows] == [[0, 500], [0]]


def test_recordings_without_steps_are_compared_as_a_whole() -> None:
    a, b = make_trace([event("aten::mm", 5, 75)]), make_trace([event("aten::mm", 10, 60)])

    (pair,) = step_pairs(_compared(a, b).sides)
    assert (pair.title, pair.a.start_ns, pair.b.start_ns, pair.length_ns) == ("whole recording", 5, 10, 70)


def test_an_empty_recording_has_no_timeline() -> None:
    nothing = empty_trace()

    assert (
        "Nothing was recorded" in TwoTimelinesTab(Scene(nothing, against=_compared(nothing, nothing))).first()["empty"]
    )


def test_dots_have_a_place_in_the_part_of_their_run() -> None:
    assert list(places([[7.0, 8.0], [9.0]])) == [(0.125, 7.0), (0.375, 8.0), (0.75, 9.0)]


def test_very_long_times_do_not_make_the_others_small() -> None:
    compared = _compared(_training(400, steps=6), _training(200, steps=6))
    points = measured_points(compared)._replace(a=[[100.0, 100.0, 100.0, 90_000.0]], b=[[100.0, 110.0]])

    assert scale_of(points) == (97.0, 1.03 * 250)
    assert points_svg(points).count("<circle") == 6


def test_a_panel_against_another_profile_has_all_tabs_and_the_verdict(compared: Compared) -> None:
    scene = scene_of(compared.sides.b.runs[0], name="Cell [2]", against=compared)

    assert tabs_of(scene) == (*TABS, *COMPARING)
    assert all("after against before: cannot tell" in text for text in bundle_of(scene).values())


def test_the_panel_of_a_comparison_has_its_own_tabs_and_strip(compared: Compared) -> None:
    made = panel(compared)

    assert [tab["name"] for tab in made.tabs] == ["differences", "side_by_side", "two_timelines"]
    assert made.strip["title"] == "after against before"
    assert made.strip["sentence"] == "cannot tell, 1.00 × the time"
    assert made.strip["figures"][0]["text"] == "1.00 µs → 1.00 µs"


def test_without_a_comparison_a_scene_has_nothing_compared() -> None:
    with pytest.raises(ValueError, match="compares nothing"):
        DifferencesTab(Scene(_training(400))).first()
