"""messages.d.ts names the very fields that Python sends to the page."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from traces import event, make_trace

import mtprof_nb.views
from mtprof_nb.advice.finding import Finding
from mtprof_nb.comparison.compared import of_recordings
from mtprof_nb.comparison.sides import Side, Sides
from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace
from mtprof_nb.views.panel import show_panel as panels
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.differences.differences_tab import DifferencesTab
from mtprof_nb.views.tabs.lines.lines_tab import LinesTab
from mtprof_nb.views.tabs.memory.memory_tab import MemoryTab
from mtprof_nb.views.tabs.operators.operators_tab import OperatorsTab
from mtprof_nb.views.tabs.side_by_side.side_by_side_tab import SideBySideTab
from mtprof_nb.views.tabs.stacks.stacks_tab import StacksTab
from mtprof_nb.views.tabs.steps.steps_tab import StepsTab
from mtprof_nb.views.tabs.summary import summary_tab
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab
from mtprof_nb.views.tabs.timeline.timeline_tab import TimelineTab
from mtprof_nb.views.tabs.two_timelines.two_timelines_tab import TwoTimelinesTab

CELL = "<ipython-input-1-0>"
(VIEWS,) = mtprof_nb.views.__path__
INTERFACE = re.compile(r"^export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+)(\??):", re.MULTILINE)


def _interfaces() -> Iterator[tuple[str, str, str]]:
    for path in sorted(Path(VIEWS).rglob("*.d.ts")):
        yield from INTERFACE.findall(path.read_text(encoding="utf-8"))


DECLARED = {name: (parent, dict(FIELD.findall(body))) for name, parent, body in _interfaces()}


def fields(name: str) -> set[str]:
    """Fields that every value of an interface has, those it inherits included."""
    parent, own = DECLARED[name]
    return {field for field, optional in own.items() if not optional} | (fields(parent) if parent else set())


@pytest.fixture
def trace() -> Trace:
    made = make_trace(
        [
            event("aten::mm", 0, 2_000, line=(CELL, 1)),
            event("aten::add", 2_000, 3_000, phase="backward", line=(CELL, 2)),
            event("aten::fill_", 3_000, 3_100),
            event("cudaLaunchKernel", 500, 900, kind="runtime", launcher=0),
            event("gemm", 1_000, 1_900, kind="kernel", device="CUDA", thread=7, launcher=0, launch=3),
            event("gemm", 2_000, 2_900, kind="kernel", device="CUDA", thread=7, launcher=0, launch=3),
        ],
        sources={CELL: "x @ y\nx + y\npass"},
        allocations=[{"time_ns": 10, "nbytes": 64, "event": 0}],
    )
    return replace(made, outside={SourceLine(CELL, 3): OutsideOps(500, 500)})


@pytest.fixture
def scene(trace: Trace) -> Scene:
    return Scene(trace)


def test_the_state_of_the_panel_and_its_strip(trace: Trace) -> None:
    panel = panels.panel(trace)

    assert {"tabs", "strip", "first", "ranks", "page"} == fields("PanelState")
    assert set(panel.strip) == fields("Strip")
    assert set(panel.strip["phases"][0]) == fields("PhaseShare")
    assert set(panel.strip["devices"][0]) == fields("DeviceBar")
    assert set(panel.strip["devices"][0]["parts"][0]) == fields("DevicePart")


def test_the_overview(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding("A title", "Some evidence.", "x = 1\ny = 2", at_most_ns=1)
    monkeypatch.setattr(summary_tab, "advise", lambda _: (finding,))
    first = SummaryTab(scene).first()

    assert set(first) == fields("SummaryFirst")
    assert set(first["lines"][0]) == fields("SlowLine")
    assert set(first["ops"][0]) == fields("SlowOp")
    assert set(first["findings"][0]) == fields("ShownFinding")
    assert first["findings"][0]["fix"] == ["x = 1", "y = 2"]


def test_the_steps() -> None:
    lengths = (1, 1, 1, 9)
    rows = [event("mm", 10 * step, 10 * step + length, step=step) for step, length in enumerate(lengths)]
    first = StepsTab(Scene(make_trace(rows, ended_ns=60))).first()

    assert set(first) == fields("StepsFirst")
    assert set(first["slow"][0]) == fields("SlowStep")
    assert set(first["slow"][0]["differences"][0]) == fields("StepDifference")


def test_the_operators(scene: Scene) -> None:
    tab = OperatorsTab(scene)
    first = tab.first()

    assert set(first) == fields("OperatorsFirst")
    assert set(tab.answer({"ask": "rows", "grouping": "op"})) == fields("OperatorsTable")
    assert set(tab.answer({"ask": "lit", "grouping": "op"})) == fields("Pairs")
    assert set(tab.answer({"ask": "events", "grouping": "op"})) == fields("EventRows")
    assert set(tab.answer({"ask": "row_of", "grouping": "op", "event": 0})) == {"row"}
    assert set(first["rows"]) == fields("OperatorRows")
    assert set(first["columns"][0]) == fields("Column")
    assert set(first["families"][0]) == fields("Family")


def test_the_lines(scene: Scene) -> None:
    tab = LinesTab(scene)
    first = tab.first()
    cost, _, outside = first["files"][0]["lines"]

    assert set(first) == fields("LinesFirst")
    assert set(first["files"][0]) == fields("ListedFile")
    assert set(cost) == {"line", *fields("CostOfOps")}
    assert set(outside) == {"line", "text", *fields("Times")}
    assert set(first["rest"][0]) == fields("CostOfOps")
    assert set(tab.answer({"ask": "ops", "id": 0})) == fields("LineOps")
    assert set(tab.answer({"ask": "lit", "grouping": "op"})) == fields("Pairs")


def test_the_timeline(scene: Scene) -> None:
    tab = TimelineTab(scene)
    window = tab.answer({"ask": "window", "begin_ns": 0, "end_ns": 3_100, "pixels": 800, "selected": None})

    assert set(tab.first()) == fields("TimelineFirst")
    assert set(tab.first()["lanes"][0]) == fields("Lane")
    assert set(window) == fields("TimelineWindow")
    assert set(window["blocks"]) == fields("Blocks")
    assert set(window["bars"]) == fields("Bars")
    assert set(window["phases"]) == fields("Phases")
    assert set(window["gaps"]) == fields("Gaps")
    assert set(tab.first()["causes"][0]) == fields("Cause")
    assert set(tab.first()["collections"]) == fields("Collections")
    assert set(tab.answer({"ask": "launches", "event": 0})) == fields("Launches")
    assert set(tab.answer({"ask": "whole"})) == fields("WholeTimeline")
    assert set(tab.answer({"ask": "whole"})["launches"]) == fields("AllLaunches")
    assert set(window["texts"]) == fields("Texts")


def test_the_stacks(scene: Scene) -> None:
    tab = StacksTab(scene)
    chart = tab.answer({"ask": "chart", "metric": "self"})

    assert set(tab.first()) == fields("StacksFirst")
    assert set(chart) == fields("StackChart")
    assert set(chart["slices"]) == fields("Slices")
    assert set(tab.answer({"ask": "lit", "metric": "self", "grouping": "op"})) == fields("LitSlices")


def test_the_memory(scene: Scene) -> None:
    tab = MemoryTab(scene)
    first = tab.first()

    assert set(first) == fields("MemoryFirst")
    assert set(first["largest"]) == fields("LargestAllocations")
    assert set(tab.answer({"ask": "window", "begin_ns": 0, "end_ns": 3_100})) == fields("MemoryWindow")
    assert set(tab.answer({"ask": "whole"})) == fields("MemoryWindow")
    assert set(first["curves"][0]) == fields("MemoryCurve")
    assert set(first["curves"][0]["peak"]) == fields("MemoryPoint")
    assert set(first["texts"]) == fields("Texts")


def test_a_comparison(trace: Trace) -> None:
    edited = replace(trace, sources={CELL: "x @ z\nx + y\npass"})
    scene = Scene(edited, against=of_recordings(Sides(Side("a", (trace,)), Side("b", (edited,)))))
    differences, versions, timelines = (
        DifferencesTab(scene).first(),
        SideBySideTab(scene).first(),
        TwoTimelinesTab(scene),
    )
    window = timelines.answer({"ask": "window", "step": 0, "begin_ns": 0, "end_ns": 3_100, "pixels": 800})

    assert set(differences) == fields("DifferencesFirst")
    assert set(differences["points"]) == fields("Points")
    assert set(differences["rows"]) == {*fields("DifferenceRows"), "text", "hint"}
    assert set(differences["columns"][0]) == fields("Column")
    assert set(differences["levels"][0]) == fields("Family")
    assert set(versions) == fields("SideBySideFirst")
    assert set(versions["files"][0]) == fields("FileVersions")
    assert set(versions["files"][0]["rows"][0]) == fields("VersionRow")
    assert set(versions["files"][0]["rows"][0]["a"]) == fields("LineVersion")
    assert set(timelines.first()) == fields("TwoTimelinesFirst")
    assert set(timelines.first()["lanes"][0][0]) == fields("Lane")
    assert set(timelines.answer({"ask": "whole"})) == fields("TwoWholes")
    assert set(timelines.answer({"ask": "whole"})["a"]) == fields("WholeSide")
    assert set(window) == fields("TwoWindows")
    assert [set(each) for each in window["windows"]] == [fields("TimelineWindow")] * 2
