"""The exported page in a real browser, from a file, without a network."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import drawn
import pytest
from playwright.sync_api import expect
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb import compare
from mtprof_nb.model.trace import Recorded, Trace
from mtprof_nb.recording import Recording

HOSTILE = "<img src=x onerror=window.harmed=1></script><script>window.harmed=1</script>"


@dataclass
class Opened:
    """A page, the errors on its console, and what it requested."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def tab(self, title: str) -> Any:
        self.page.get_by_role("tab", name=title).click()
        return self.page.get_by_role("tabpanel")


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Opened]]:
    """Writes the page of a trace, and opens the file in a browser without a network."""
    contexts = []

    def shown(trace: Trace, **options: Any) -> Opened:
        path: Path = tmp_path_factory.mktemp("page") / "report.html"
        Recording(trace).export_html(path)
        context = browser.new_context(offline=True, viewport={"width": 1_100, "height": 800}, **options)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.problems.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.problems.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(path.as_uri())
        found.tab("Operators").locator(".mtprof-row").first.wait_for()
        return found

    yield shown
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def small(opened: Callable[..., Opened]) -> Opened:
    return opened(training_run(3_000))


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """A page that left something on its console, or requested anything but itself, has failed."""
    yield
    if "small" in request.fixturenames:
        page = request.getfixturevalue("small")
        assert page.problems == []
        assert len(page.requests) == 1


def test_the_table_sorts_filters_and_groups(small: Opened) -> None:
    body = small.tab("Operators")
    labels, count = body.locator(".mtprof-row .mtprof-label"), body.locator(".mtprof-count")
    body.get_by_role("columnheader", name="Name").click()
    assert labels.all_inner_texts() == sorted(labels.all_inner_texts())
    body.page.get_by_label("Search in all tabs").fill("norm")
    expect(count).to_have_text("showing 4 of 27")
    body.page.get_by_label("Search in all tabs").fill("")
    body.get_by_label("Group by").select_option("thread")
    expect(labels).to_have_text(["MainThread", "loader"])
    body.get_by_label("Group by").select_option("op")
    expect(count).to_have_text("showing 27 of 27")
    expect(small.page.get_by_text("kernel is gone")).to_be_hidden()


def test_the_timeline_zooms_to_single_events(small: Opened) -> None:
    body = small.tab("Timeline")
    status = body.locator(".mtprof-count")
    expect(status).to_contain_text("2,967 events")
    canvas = drawn.canvas(body).bounding_box()
    small.page.mouse.move(canvas["x"] + 400, canvas["y"] + 150)
    small.page.mouse.down()
    small.page.mouse.move(canvas["x"] + 430, canvas["y"] + 150, steps=4)
    small.page.mouse.up()

    expect(status).to_contain_text(re.compile(r"µs: ([\d,]+) events, \1 blocks"))
    drawn.wait_for(body, "shapes.some(({ label, width }) => label === 'aten::mm' && width > 10)")
    small.page.mouse.move(*drawn.middle(body, "aten::mm"))
    expect(body.get_by_role("tooltip")).to_contain_text("inputs [64, 256]")
    body.get_by_role("button", name="Show the whole recording").click()
    expect(status).to_contain_text("2,967 events")


def test_a_selection_is_linked_over_all_tabs(small: Opened) -> None:
    small.tab("Operators").locator(".mtprof-row", has_text="aten::relu").first.click()
    timeline = small.tab("Timeline")
    drawn.wait_for(timeline, "shapes.some(({ isLit }) => isLit === false)")
    assert "aten::relu" in {bar["label"] for bar in drawn.bars(timeline) if bar["isLit"]}
    stacks = small.tab("Stacks")
    lit = stacks.locator(".mtprof-slice", has=small.page.locator("[fill-opacity='1']"))
    expect(lit).to_have_count(1)
    lines = small.tab("Lines")
    expect(lines.locator(".mtprof-line-lit .mtprof-line-at")).to_have_text(["23"])
    lines.locator(".mtprof-line-lit").click()
    expect(lines.locator(".mtprof-line-ops")).to_contain_text("aten::relu")
    stacks = small.tab("Stacks")
    stacks.locator(".mtprof-slice", has_text=re.compile("^randn$")).click()
    chip = small.page.locator(".mtprof-chip")
    expect(chip).to_have_text("aten::randn ×")
    chip.click()


def test_folded_libraries_are_opened_by_a_click_one_by_one_or_all(opened: Callable[..., Opened]) -> None:
    library = "/usr/lib/site-packages"
    fit = [(f"{library}/lightning/b.py", 2, "run"), (f"{library}/lightning/a.py", 1, "fit"), ("train.py", 9, "main")]
    loss = [(f"{library}/torch/d.py", 4, "engine"), (f"{library}/torch/c.py", 3, "backward"), ("train.py", 5, "step")]
    shown = opened(
        make_trace(
            [
                event("aten::mm", 0, 400_000, stack=[*loss, *fit]),
                event("aten::add", 500_000, 700_000, stack=fit[-1:]),
            ]
        )
    )
    stacks = shown.tab("Stacks")
    texts, libraries = stacks.locator(".mtprof-slice text"), stacks.get_by_role("button", name="Library frames")
    folded = {"main", "lightning (2 frames)", "step  train.py:5", "torch (2 frames)", "add", "mm"}
    expect(texts).to_have_count(6)
    assert set(texts.all_text_contents()) == folded

    stacks.locator(".mtprof-slice", has_text="torch (2 frames)").click()
    expect(texts).to_have_count(7)
    assert set(texts.all_text_contents()) == folded - {"torch (2 frames)"} | {"backward  c.py:3", "engine  d.py:4"}
    stacks.locator(".mtprof-slice", has_text="step  train.py:5").click()
    stacks.locator("svg").press("ArrowUp")
    stacks.locator("svg").press("Enter")
    expect(texts.get_by_text("fit  a.py:1")).to_be_visible()
    libraries.click()
    libraries.click()
    expect(texts).to_have_count(6)
    assert set(texts.all_text_contents()) == folded
    libraries.click()
    expect(texts).to_have_count(8)
    assert shown.problems == []


def test_stacks_and_memory_answer_without_python(small: Opened) -> None:
    stacks = small.tab("Stacks")
    stacks.get_by_label("Size by").select_option("count")
    expect(stacks.locator(".mtprof-slice").first).to_have_attribute("aria-label", re.compile("calls, 100.0 % of all"))
    stacks.get_by_role("button", name="Sunburst").click()
    expect(stacks.locator(".mtprof-slice path").first).to_be_visible()
    memory = small.tab("Memory")
    drawn.wait_for(memory, "shapes.length > 0")
    canvas = drawn.canvas(memory).bounding_box()
    small.page.mouse.move(canvas["x"] + 400, canvas["y"] + 100)
    expect(memory.get_by_role("tooltip")).to_contain_text("iB on cpu, at")


def test_a_page_of_a_long_recording_opens_and_says_where_its_detail_ends(opened: Callable[..., Opened]) -> None:
    page = opened(training_run(400_000))
    body = page.tab("Timeline")
    status = body.locator(".mtprof-count")
    expect(status).to_contain_text("400,029 events")
    for _ in range(12):
        body.get_by_label("Zoom in").click()

    expect(status).to_contain_text("no finer detail in this page")
    assert page.problems == []


def test_the_page_is_dark_where_the_system_is(opened: Callable[..., Opened]) -> None:
    page = opened(training_run(300), color_scheme="dark").page

    expect(page.locator("body")).to_have_css("background-color", "rgb(18, 20, 23)")
    expect(page.locator(".mtprof")).to_have_css("background-color", "rgb(27, 30, 34)")


def test_in_print_all_tabs_stand_below_one_another_on_white(opened: Callable[..., Opened], tmp_path: Path) -> None:
    page = opened(training_run(3_000), color_scheme="dark").page
    # The page prepares one tab after the other, this one last.
    page.locator(".mtprof-memory .mtprof-tools").wait_for(state="attached")
    tabs = page.get_by_role("tab").count()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")

    expect(page.get_by_role("tabpanel")).to_have_count(tabs)
    expect(page.locator(".mtprof-operators .mtprof-row")).to_have_count(27)
    expect(page.locator(".mtprof")).to_have_css("background-color", "rgb(255, 255, 255)")
    assert len(drawn.bars(page.locator(".mtprof-timeline"))) > 500
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    expect(page.get_by_role("tabpanel")).to_have_count(1)
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000


def test_names_of_others_are_shown_as_text_and_never_run(opened: Callable[..., Opened]) -> None:
    rows = [event(HOSTILE, 0, 900_000, line=(HOSTILE, 1), stack=[(HOSTILE, 1, HOSTILE)])]
    trace = make_trace(rows, allocations=[{"time_ns": 5, "nbytes": 64, "event": 0}], label=HOSTILE)
    page = opened(trace)
    for title in ("Lines", "Timeline", "Stacks", "Memory"):
        page.tab(title).locator(".mtprof-tools").wait_for()

    assert page.page.title() == HOSTILE
    expect(page.page.locator(".mtprof-title")).to_have_text(HOSTILE)
    assert page.page.evaluate("window.harmed") is None
    assert page.problems == []


def test_the_policy_forbids_scripts_and_requests(opened: Callable[..., Opened]) -> None:
    page = opened(training_run(300))
    page.page.evaluate(
        """() => {
          document.body.append(Object.assign(document.createElement("script"), { textContent: "window.harmed = 1" }));
          document.body.append(Object.assign(document.createElement("img"), { src: "http://127.0.0.1:9/x.png" }));
        }"""
    )
    page.page.wait_for_timeout(200)

    assert page.page.evaluate("window.harmed") is None
    assert len([problem for problem in page.problems if "Content Security Policy" in problem]) == 2


@pytest.fixture
def page_at(browser: Any) -> Iterator[Callable[[Path], Opened]]:
    """Opens a file in a browser without a network."""
    context = browser.new_context(offline=True, viewport={"width": 1_100, "height": 800})

    def opened(path: Path) -> Opened:
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.problems.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.problems.append(str(error)))
        found.page.goto(path.as_uri())
        return found

    yield opened
    context.close()


def test_a_memory_timeline_opens_with_the_bytes_of_each_kind(page_at: Callable[[Path], Opened], tmp_path: Path) -> None:
    recorded = Recorded(record_shapes=True, profile_memory=True, with_stack=True)
    blocks = [(1_000, 8, 16), (2_000, 64, 32), (3_000, -8, 16), (9_000, -64, 32)]
    rows = [{"time_ns": at, "nbytes": nbytes, "address": address, "event": 0} for at, nbytes, address in blocks]
    Recording(make_trace([event("aten::mm", 0, 10_000)], rows, recorded=recorded)).export_memory_timeline(
        tmp_path / "memory.html"
    )
    opened = page_at(tmp_path / "memory.html")
    body = opened.page.get_by_role("tabpanel", name="Memory")
    expect(body.locator(".mtprof-legend")).to_have_text("temporary")
    box = body.locator("canvas.mtprof-canvas").bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    expect(body.get_by_role("tooltip")).to_contain_text("64 B on cpu, at")
    expect(body.get_by_role("tooltip")).to_contain_text("temporary 64 B")
    assert opened.problems == []


def test_a_comparison_answers_without_python(page_at: Callable[[Path], Opened], tmp_path: Path) -> None:
    compare(training_run(4_000), training_run(2_000), names=("before", "after")).export_html(tmp_path / "page.html")
    compared = page_at(tmp_path / "page.html")
    body = compared.tab("Differences")
    expect(compared.page.locator(".mtprof-title")).to_have_text("after against before")
    expect(body.locator(".mtprof-row .mtprof-label").first).to_have_text("median step")
    body = compared.tab("Two timelines")
    stages = body.locator(".mtprof-stage")
    for side in range(2):
        drawn.wait_for(stages.nth(side), "shapes.some(({ label }) => label === 'aten::mm')")
    box = drawn.canvas(stages.nth(0)).bounding_box()
    compared.page.mouse.move(box["x"] + 400, box["y"] + 30)
    compared.page.mouse.down()
    compared.page.mouse.move(box["x"] + 440, box["y"] + 30, steps=4)
    compared.page.mouse.up()
    for side in range(2):
        # Single events come into view only if the page makes windows itself.
        drawn.wait_for(stages.nth(side), "shapes.some(({ isAlone, width }) => isAlone && width > 20)")
    body.get_by_label("Step", exact=True).select_option(label="step 1")
    expect(body.locator(".mtprof-count")).to_have_text("721 µs of both")
    expect(compared.page.get_by_text("kernel is gone")).to_be_hidden()
    assert compared.problems == []


def test_without_scripts_the_static_panel_is_there(browser: Any, tmp_path: Path) -> None:
    Recording(training_run(300)).export_html(tmp_path / "report.html")
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())

    expect(page.get_by_role("cell", name="aten::mm").first).to_be_visible()
    expect(page.get_by_title("Timeline")).to_be_visible()
    context.close()
