"""The panel as one HTML file: it carries its content, allows no script but its own, and answers as Python does."""

import json
import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from itertools import compress
from pathlib import Path
from typing import Any

import pytest
from page_elements import Elements
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb import Comparison, compare, load
from mtprof_nb.comparison.alternation import Alternated, TimedBlock
from mtprof_nb.comparison.compared import of_functions
from mtprof_nb.comparison.sides import Side, Sides
from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.recording import Recording
from mtprof_nb.views.page import html_page
from mtprof_nb.views.panel.show_comparison import comparison_scene
from mtprof_nb.views.panel.tabs import COMPARING, TABS, TabKind
from mtprof_nb.views.panel.wire import with_deltas
from mtprof_nb.views.scene import Scene

ROOT = Path(__file__).parents[2]
GPU_TRAINING = ROOT / "notebooks" / "gpu_training.json.gz"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def elements(trace: Trace, **options: Any) -> Elements:
    return Elements(html_page.page(Scene(trace, **options)))


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_the_policy_of_the_page_allows_its_own_script_and_styles_and_nothing_else() -> None:
    page = elements(training_run(500))
    ((_, policy),) = [found for found in page.found if found[1].get("http-equiv") == "Content-Security-Policy"]

    rules = dict(rule.strip().split(" ", 1) for rule in str(policy["content"]).split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": hashed(page.texts["script"][-1]),
        "style-src": " ".join(map(hashed, page.texts["style"])),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    kinds = [given.get("type") for tag, given in page.found if tag == "script"]
    assert kinds == ["application/mtprof"] * (len(kinds) - 1) + ["module"]


def test_the_page_names_nothing_outside_itself() -> None:
    page = elements(training_run(500))

    assert {tag for tag, given in page.found if "src" in given or "href" in given} == {"img"}
    assert all(str(given["src"]).startswith("data:") for tag, given in page.found if tag == "img")
    assert not any("style" in given for _, given in page.found), "the policy would forbid it"


def test_the_page_carries_every_tab() -> None:
    parts = elements(training_run(500)).parts()

    assert [tab["name"] for tab in parts["state"]["tabs"]] == [kind.name for kind in TABS]
    assert set(parts) == {
        "state",
        *(f"first-{kind.name}" for kind in TABS),
        *(f"carried-{kind.name}" for kind in TABS),
    }
    groupings = ("op", "shapes", "types", "line", "scope", "thread")
    assert set(parts["carried-operators"]) == {
        *(f"{ask}-{grouping}" for ask in ("rows", "lit", "events") for grouping in groupings),
        "events-source",
    }


def test_names_of_others_are_inert() -> None:
    rows = [event(HOSTILE, 0, 900, line=(HOSTILE, 1), stack=[(HOSTILE, 1, HOSTILE)])]
    trace = make_trace(rows, allocations=[{"time_ns": 5, "nbytes": 64, "event": 0}], label=HOSTILE)
    page, plain = elements(trace, status=HOSTILE), elements(make_trace([event("a", 0, 900)]))

    assert page.texts["title"] == [HOSTILE]
    assert [tag for tag, _ in page.found if tag == "script"] == [tag for tag, _ in plain.found if tag == "script"]
    assert not any(name.startswith("on") for _, given in page.found for name in given)
    assert page.parts()["first-operators"]["rows"]["label"] == [HOSTILE]


def test_the_script_does_not_end_the_element_that_it_is_in() -> None:
    script = elements(training_run(500)).texts["script"][-1]

    assert script.endswith("});\n")
    assert not re.search(r"</?script|<!--", script, re.IGNORECASE)


def test_a_recording_without_events_has_a_page_that_says_so() -> None:
    parts = elements(empty_trace(label="Cell [6]")).parts()

    assert parts["state"]["tabs"] == []
    assert parts["state"]["strip"]["notes"] == ["Nothing was recorded: no op ran, or no tensor runtime was imported."]


def test_without_scripts_the_page_shows_the_static_panel() -> None:
    page = html_page.page(Scene(training_run(500)))
    static = page[page.index("<noscript>") : page.index("</noscript>")]

    assert "aten::addmm" in static
    assert 'class="static-' in static


@pytest.mark.parametrize(("events", "most_bytes"), [(10_000, 2_500_000), (300_000, 6_000_000)])
def test_the_page_is_small(events: int, most_bytes: int, tmp_path: Path) -> None:
    Recording(training_run(events)).export_html(tmp_path / "page.html", name="mine")

    assert (tmp_path / "page.html").stat().st_size < most_bytes
    assert "<title>mine</title>" in (tmp_path / "page.html").read_text()


def test_a_column_is_written_as_differences_where_these_are_shorter() -> None:
    rising = list(range(1_000_000, 1_000_300, 3))

    assert with_deltas({"a": {"rising": rising}}) == {"a": {"rising": {"deltas": [1_000_000] + [3] * 99}}}
    assert with_deltas({"few": rising[:99]}) == {"few": rising[:99]}
    assert with_deltas({"text": ["x"] * 200, "float": [0.5] * 200}) == {"text": ["x"] * 200, "float": [0.5] * 200}


SELECTED = [{"grouping": "op", "row": 0}, {"grouping": "shapes", "row": 1}, {"grouping": "source", "row": 0}]
WINDOWS = [(0, 20_000_000), (3_000_000, 9_000_000), (5_000_000, 5_400_000), (5_000_000, 5_010_000)]
QUESTIONS: list[dict[str, Any]] = [
    *(
        {"tab": "timeline", "ask": "window", "begin_ns": begin, "end_ns": end, "pixels": 900, "selected": selected}
        for begin, end in WINDOWS
        for selected in (None, *SELECTED)
    ),
    *({"tab": "memory", "ask": "window", "begin_ns": begin, "end_ns": end} for begin, end in WINDOWS),
    *({"tab": "operators", "ask": "row_of", "grouping": "line", "event": number} for number in (0, 40, 77)),
]


def page_answers(scene: Scene, questions: list[dict[str, Any]], kinds: tuple[TabKind, ...] = TABS) -> list[Any]:
    """The answers of the page, which has all events of the recording."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    content = html_page._content(scene, kinds)
    carried = {kind.name: content[f"carried-{kind.name}"] for kind in kinds}
    asked = [{**asked, "selected": _with_rows(asked.get("selected"))} for asked in questions]
    given = json.dumps({"carried": carried, "questions": asked})
    command = [node, "tests/web/page_answers.js"]
    ran = subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT, check=True)
    answers: list[Any] = json.loads(ran.stdout)
    return answers


def _with_rows(selected: dict[str, Any] | None) -> dict[str, Any] | None:
    return selected and {"rows": [selected["row"]], **selected}


def answers_of(
    scene: Scene, questions: list[dict[str, Any]], kinds: tuple[TabKind, ...] = TABS
) -> tuple[list[Any], list[Any]]:
    """The answers of the page and of Python, which answers for recordings that are too long for a page."""
    tabs = {kind.name: kind.make(scene) for kind in kinds}
    python = [json.loads(json.dumps(tabs[asked["tab"]].answer(asked))) for asked in questions]
    return page_answers(scene, questions, kinds), python


@pytest.fixture(scope="module")
def answered() -> tuple[list[Any], list[Any]]:
    return answers_of(Scene(training_run(2_000)), QUESTIONS)


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=lambda number: f"{QUESTIONS[number]['ask']}-{number}")
def test_the_page_answers_as_python_does(number: int, answered: tuple[list[Any], list[Any]]) -> None:
    page, python = (dict(answers[number]) for answers in answered)
    check_texts(page, python)

    assert page == python


def check_texts(page: dict[str, Any], python: dict[str, Any]) -> None:
    """The page has one table of texts for all windows: take it from both, and check that it has all texts."""
    more, fewer = page.pop("texts", {}), python.pop("texts", {})
    assert all(more[table].items() >= texts.items() for table, texts in fewer.items())


@pytest.fixture(scope="module")
def selections() -> Trace:
    """Ops on three lines, in modules and in none, and one below another that is too short to be drawn in the stacks."""
    return make_trace(
        [
            event("aten::mm", 0, 20_000, line=("a.py", 1), module="Net.first"),
            event("aten::add", 20_000, 30_000, line=("a.py", 2), module="Net.second"),
            event("aten::view", 20_010, 20_015, line=("a.py", 2)),
            event("aten::mm", 30_000, 50_000, line=("a.py", 3), module="Network"),
        ]
    )


@pytest.mark.parametrize(
    ("grouping", "rows", "lines", "slices", "blocks"),
    [
        ("op", [0], [0, 2], [1, 2, 0, 0], [True, False, True, False]),
        ("op", [1], [1], [1, 0, 2, 0], [False, True, False, False]),
        ("op", [2], [1], [1, 0, 1, 0], [False, False, False, True]),
        ("line", [3], [2], [1, 2, 0, 0], [False, False, True, False]),
        ("module", [0, 1], [0, 1], [1, 2, 2, 0], [True, True, False, False]),
        ("source", [1], [1], [1, 0, 2, 0], [False, True, False, True]),
    ],
)
def test_a_selection_is_lit_in_every_tab(
    selections: Trace,
    grouping: str,
    rows: list[int],
    lines: list[int],
    slices: list[int],
    blocks: list[bool],
) -> None:
    selected = {"grouping": grouping, "row": rows[0], "rows": rows}
    window = {"begin_ns": 0, "end_ns": 50_000, "pixels": 4_000}
    asked = [
        {"tab": "lines", "ask": "lit", "selected": selected},
        {"tab": "stacks", "ask": "lit", "metric": "self", "selected": selected},
        {"tab": "timeline", "ask": "window", "selected": selected, **window},
    ]
    listed, stacked, drawn = page_answers(Scene(selections), asked)

    assert (listed, stacked, drawn["blocks"]["lit"]) == (lines, slices, blocks)


def test_a_selected_line_lights_its_rows(selections: Trace) -> None:
    asked = [
        {"tab": "operators", "ask": "lit", "grouping": grouping, "line": line}
        for grouping in ("op", "line", "module")
        for line in (1, 2)
    ]

    assert page_answers(Scene(selections), asked) == [[1, 2], [0], [1, 2], [3], [1, 2], [3]]


def questions_of_devices(trace: Trace) -> list[dict[str, Any]]:
    """Windows of several lengths, windows of single events with each row selected, and the launches of all events."""
    begin = {"tab": "timeline", "ask": "window", "begin_ns": 0, "end_ns": 5_000_000, "pixels": 900}
    windows = [{**begin, "end_ns": end, "selected": None} for end in (5_000_000, 1_000_000, 100_000)]
    lit = [{**begin, "pixels": 4_000, "selected": {"grouping": "op", "row": row}} for row in range(40)]
    return [
        *windows,
        *lit,
        *({"tab": "timeline", "ask": "launches", "event": event} for event in range(len(trace))),
    ]


def test_the_page_answers_as_python_does_for_devices() -> None:
    trace = load(GPU_TRAINING).trace
    asked = questions_of_devices(trace)
    for question, page, python in zip(asked, *answers_of(Scene(trace), asked), strict=True):
        check_texts(page, python)
        if question.get("selected"):
            # In a block of many, the page knows of the longest alone whether it is selected.
            alone = [count == 1 for count in python["blocks"]["count"]]
            page, python = ([*compress(answer["blocks"]["lit"], alone)] for answer in (page, python))
            assert any(python)

        assert page == python, question


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Two training runs, of which the first has more steps."""
    return compare(training_run(4_000), training_run(3_000), names=("before", "after"))


def test_a_comparison_has_a_page_with_its_tabs(comparison: Comparison, tmp_path: Path) -> None:
    comparison.export_html(tmp_path / "comparison.html")
    text = (tmp_path / "comparison.html").read_text()
    page = Elements(text)
    parts = page.parts()

    assert page.texts["title"] == ["after against before"]
    assert [tab["name"] for tab in parts["state"]["tabs"]] == [kind.name for kind in COMPARING]
    assert parts["first-differences"]["labels"] == ["before", "after"]
    assert not any("style" in given for _, given in page.found), "the policy would forbid it"
    assert "median step" in text[text.index("<noscript>") : text.index("</noscript>")]


def test_a_page_against_another_recording_has_the_tabs_of_both(comparison: Comparison) -> None:
    scene = Scene(comparison.traces[1][0], against=comparison.compared)
    parts = Elements(html_page.page(scene)).parts()

    assert [tab["name"] for tab in parts["state"]["tabs"]] == [kind.name for kind in (*TABS, *COMPARING)]
    assert parts["state"]["strip"]["sentence"].startswith("after against before: cannot tell")
    # Events of the first recording are none of the second, which has fewer.
    events = parts["carried-operators"]["events-op"]["event"]["deltas"]
    assert len(comparison.traces[0][0]) > len(scene.trace) > sum(events)


def test_a_page_of_functions_that_were_not_recorded_has_their_times() -> None:
    sides = Sides(Side("slow", ()), Side("fast", ()))
    times = Alternated((2.0,) * 9, (1.0,) * 9, TimedBlock(1, 1), TimedBlock(1, 1), 9, 1.0, is_interrupted=True)
    parts = Elements(html_page.comparison_page(of_functions(sides, times))).parts()

    assert parts["first-differences"]["rows"]["label"] == ["median call"]
    assert "empty" in parts["first-two_timelines"]


def test_the_page_answers_as_python_does_for_two_timelines(comparison: Comparison) -> None:
    scene = comparison_scene(comparison.compared)
    asked = [
        {"tab": "two_timelines", "ask": "window", "step": step, "begin_ns": begin, "end_ns": end, "pixels": 900}
        for step in (0, 1, 2)
        for begin, end in ((0, 6_000_000), (1_000_000, 2_000_000), (100_000, 140_000))
    ]
    for question, page, python in zip(asked, *answers_of(scene, asked, COMPARING), strict=True):
        for one, other in zip(page["windows"], python["windows"], strict=True):
            check_texts(one, other)
            assert one == other, question
