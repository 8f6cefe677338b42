"""The panel in a real JupyterLab: what a user does, and what is then to be seen."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect

FULL, AGAIN, HOSTILE, BARE, EMPTY, LONG = range(6)
HOSTILE_NAME = "<img src=x onerror=window.harmed=1><script>window.harmed=1</script>"
SETUP = f"""
from mtprof_nb.trace import empty_trace
from mtprof_nb.views import panel
from synthetic import training_run
from traces import event, make_trace

full = training_run(3_000)
long = training_run(400_000)
bare = make_trace([event("aten::mm", 0, 40_000), event("aten::add", 50_000, 60_000)], label="Cell [5]")
name = "{HOSTILE_NAME}"
hostile = make_trace(
    [
        event(name, 0, 900_000, line=(name, 1), stack=[(name, 1, name)], thread=1),
        event("aten::add", 1_000_000, 1_500_000, stack=[("b.py", 2, "g")], thread=1),
    ],
    allocations=[{{"time_ns": 5, "nbytes": 64, "event": 0}}],
    label=name,
)
"""
COUNT_PANELS = """
from ipywidgets.widgets.widget import _instances
from mtprof_nb.views.widget import Panel
print(sum(isinstance(widget, Panel) for widget in _instances.values()))
"""
SHOWS = [
    "panel.show(full)",
    "panel.show(full)",
    "panel.show(hostile, status=name)",
    "panel.show(bare, limit=1)",
    "panel.show(empty_trace(label='Cell [6]'))",
    "panel.show(long)",
]
TITLES = ("Operators", "Lines", "Timeline", "Stacks", "Memory")


@dataclass
class Shown:
    """The page after all panels were shown, and the bytes that each brought."""

    page: Page
    nbytes: list[int] = field(default_factory=list)

    def panel(self, number: int = FULL) -> Any:
        return self.page.panel(number)

    def open(self, title: str, number: int = FULL) -> Any:
        """Brings a tab to the front; returns its body."""
        panel = self.panel(number)
        panel.get_by_role("tab", name=title).click()
        return panel.get_by_role("tabpanel")

    def timeline(self, number: int = FULL) -> Any:
        """The timeline of a panel, drawn, with everything in its window."""
        body = self.open("Timeline", number)
        body.locator(".barlayer path").first.wait_for(timeout=30_000)
        body.get_by_role("button", name="Show the whole recording").click()
        return body


@pytest.fixture(scope="module")
def run(lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Shown]:
    page = new_page(lab.write("panel.ipynb", [SETUP, *SHOWS, COUNT_PANELS]))
    shown = Shown(page)
    page.run(0)
    for number in range(len(SHOWS)):
        before = page.received
        page.run(number + 1)
        shown.panel(number)
        if number in (FULL, AGAIN):
            shown.timeline(number)
        shown.nbytes.append(page.received - before)
        if number != EMPTY:
            shown.open("Operators", number)
    yield shown
    page.tab.close()


@pytest.fixture(autouse=True)
def no_errors_on_the_console(run: Shown) -> Iterator[None]:
    yield
    problems, run.page.problems[:] = list(run.page.problems), []
    assert problems == []


def cells(body: Any, column: int) -> list[str]:
    """What the visible rows say in a column."""
    return [row.locator(".mtprof-cell").nth(column).inner_text() for row in body.locator(".mtprof-row").all()]


def labels(body: Any) -> list[str]:
    return body.locator(".mtprof-row .mtprof-label").all_inner_texts()


def test_the_strip_shows_the_key_figures_and_the_phases(run: Shown) -> None:
    strip = run.panel().locator(".mtprof-strip")

    expect(strip.locator(".mtprof-title")).to_have_text("Cell [3]")
    assert strip.locator(".mtprof-figure-title").all_inner_texts() == [
        *("wall", "in ops", "ops", "steps", "threads", "peak memory", "profiler")
    ]
    assert strip.locator(".mtprof-figure-text").all_inner_texts()[:3] == ["19.2 ms", "22.3 ms", "2,898"]
    bar = strip.get_by_role("img")
    assert (
        bar.get_attribute("aria-label") == "Time in ops: forward 28.1 %, backward 47.7 %, optimizer 3.6 %, other 20.7 %"
    )


def test_a_click_anywhere_on_a_header_sorts_by_number_and_another_reverses(run: Shown) -> None:
    body = run.open("Operators")
    header = body.get_by_role("columnheader", name="Calls")
    header.click(position={"x": 3, "y": 3})
    expect(header).to_have_attribute("aria-sort", "descending")
    calls = [int(text.replace(",", "")) for text in cells(body, 1)]
    assert calls == sorted(calls, reverse=True)
    assert len(set(map(len, map(str, calls)))) > 1, "numbers of several lengths, which sorted as text would be wrong"

    header.click(position={"x": 3, "y": 3})
    expect(header).to_have_attribute("aria-sort", "ascending")
    calls = [int(text.replace(",", "")) for text in cells(body, 1)]
    assert calls == sorted(calls)

    body.get_by_role("columnheader", name="Name").click()
    assert labels(body) == sorted(labels(body))
    body.get_by_role("columnheader", name="Self").click()
    assert labels(body)[0] == "aten::mm"


def test_the_filter_takes_a_substring_or_a_regex_and_says_when_it_is_none(run: Shown) -> None:
    body = run.open("Operators")
    box, count = body.get_by_label("Filter rows by name"), body.locator(".mtprof-count")
    regex = body.get_by_role("button", name="regular expression")
    expect(count).to_have_text("showing 27 of 27")

    box.fill("NORM")
    expect(count).to_have_text("showing 4 of 27")
    assert all("norm" in label.lower() for label in labels(body))
    box.fill("mm$|relu$")
    expect(count).to_have_text("showing 0 of 27")
    expect(body.get_by_text("No name holds “mm$|relu$”.")).to_be_visible()
    regex.click()
    expect(count).to_have_text("showing 4 of 27")
    box.fill("(mm")
    expect(count).to_have_text("not a regular expression: Unterminated group")
    expect(box).to_have_attribute("aria-invalid", "true")
    regex.click()
    box.fill("")
    expect(count).to_have_text("showing 27 of 27")


def test_rows_are_grouped_anew_by_the_kernel(run: Shown) -> None:
    body = run.open("Operators")
    grouping = body.get_by_label("Group by")

    grouping.select_option("line")
    expect(body.locator(".mtprof-detail").first).to_have_text("train.py:21")
    grouping.select_option("thread")
    expect(body.locator(".mtprof-count")).to_have_text("showing 2 of 2")
    assert labels(body) == ["MainThread", "loader"]
    assert grouping.locator("option[value=module]").inner_text() == "module (--with-modules)"
    grouping.select_option("op")
    expect(body.locator(".mtprof-count")).to_have_text("showing 27 of 27")


def test_the_listed_rows_are_copied_as_csv(run: Shown) -> None:
    body = run.open("Operators")
    run.page.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    body.get_by_role("button", name="CSV").click()
    expect(body.locator(".mtprof-count")).to_have_text("copied 27 rows")
    lines = run.page.tab.evaluate("navigator.clipboard.readText()").splitlines()

    assert lines[0] == "name,detail,count,self_ns,total_ns,average_ns,allocated_bytes,flops"
    assert len(lines) == 28
    assert lines[1].startswith("aten::mm,,276,")
    expect(body.locator(".mtprof-count")).to_have_text("showing 27 of 27")


def test_the_table_is_worked_with_the_keyboard(run: Shown) -> None:
    body = run.open("Operators")
    grid = body.get_by_role("grid")
    grid.focus()
    grid.press("Home")
    grid.press("ArrowDown")
    grid.press("Enter")
    expect(body.get_by_role("row", selected=True)).to_contain_text(labels(body)[1])
    grid.press("Escape")
    expect(body.get_by_role("row", selected=True)).to_have_count(0)
    grid.press("End")
    expect(body.locator(".mtprof-row").last).to_be_in_viewport()
    grid.press("Home")


def test_a_selected_row_is_lit_in_timeline_and_stacks_and_the_rest_is_dimmed(run: Shown) -> None:
    body = run.open("Operators")
    body.locator(".mtprof-row", has_text="aten::addmm").first.click()
    chip = run.panel().get_by_role("button", name="Selected: aten::addmm")
    expect(chip).to_be_visible()

    timeline = run.timeline()
    expect(timeline.locator(".barlayer .trace").nth(1).locator("path[style*='opacity: 0.16']").first).to_be_attached()
    opacities = (
        timeline.locator(".barlayer .trace")
        .nth(1)
        .locator("path")
        .evaluate_all("paths => [...new Set(paths.map(path => path.style.opacity))].sort()")
    )
    assert opacities == ["0.16", "1"]
    stacks = run.open("Stacks")
    faded = "path.surface[style*='fill-opacity: 0.15']"
    expect(stacks.locator(faded).first).to_be_attached()
    lit = stacks.locator("g.slice", has_text=re.compile("^addmm$")).locator("path.surface")
    assert "fill-opacity: 1" in lit.get_attribute("style")

    chip.click()
    expect(chip).to_be_hidden()
    expect(stacks.locator(faded)).to_have_count(0)


def test_a_click_on_an_event_or_a_slice_selects_its_row(run: Shown) -> None:
    body = run.timeline()
    run.page.drag(body.locator(".nsewdrag"), 0.30, 0.34)
    name = body.locator(".textpoint text", has_text=re.compile("^AddmmB")).first
    name.wait_for()
    box = run.page.settled_box(name)
    run.page.tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    chip = run.panel().locator(".mtprof-chip")
    expect(chip).to_have_text("AddmmBackward0 ×")

    stacks = run.open("Stacks")
    stacks.locator("g.slice", has_text=re.compile("^randn$")).click()
    expect(chip).to_have_text("aten::randn ×")
    operators = run.open("Operators")
    expect(operators.get_by_role("row", selected=True)).to_contain_text("aten::randn")
    chip.click()
    run.open("Stacks").locator("g.slice").first.click()


def test_every_slice_of_an_icicle_with_room_for_it_has_a_name(run: Shown) -> None:
    run.open("Stacks", AGAIN).locator("g.slice").first.wait_for()
    nameless = """() => [...document.querySelectorAll(".mtprof-stacks g.slice")].filter((slice) => {
      const text = slice.querySelector("text");
      const is_named = text?.textContent.trim() && text.getBoundingClientRect().width > 1;
      return slice.querySelector("path").getBoundingClientRect().width > 60 && !is_named;
    }).length"""
    run.page.tab.wait_for_function(f"() => ({nameless})() === 0", timeout=5_000)


def test_a_zoomed_icicle_stays_where_it_is_when_something_is_selected(run: Shown) -> None:
    chip, faded = run.panel(AGAIN).locator(".mtprof-chip"), "path.surface[style*='fill-opacity: 0.15']"
    level = "element => element.querySelector('.js-plotly-plot')._fullData[0].level"
    stacks = run.open("Stacks", AGAIN)
    stacks.locator("g.slice", has_text=re.compile("^AddmmBackward0$")).click()
    expect(chip).to_have_text("AddmmBackward0 ×")
    expect(stacks.locator("g.slice", has_text=re.compile("^linear$"))).to_have_count(0)
    zoomed = stacks.evaluate(level)

    run.open("Operators", AGAIN).locator(".mtprof-row", has_text="aten::sum").first.click()
    expect(run.open("Stacks", AGAIN).locator(faded).first).to_be_attached()
    assert stacks.evaluate(level) == zoomed
    chip.click()
    expect(stacks.locator(faded)).to_have_count(0)
    assert stacks.evaluate(level) == zoomed
    # By another number slices are others.
    stacks.get_by_label("Size by").select_option("count")
    expect(stacks.locator("g.slice", has_text=re.compile("^linear$")).first).to_be_visible()
    stacks.get_by_label("Size by").select_option("self")


def test_zooming_brings_detail_that_was_not_there_and_a_double_click_brings_all_back(run: Shown) -> None:
    body = run.timeline(LONG)
    status = body.locator(".mtprof-count")
    expect(status).to_contain_text("400,029 events")
    assert body.locator(".textpoint text", has_text="addmm").count() == 0

    plot = body.locator(".nsewdrag")
    for _ in range(3):
        before = status.inner_text()
        run.page.drag(plot, 0.50, 0.55)
        expect(status).not_to_have_text(before)
    expect(status).to_contain_text(re.compile(r"µs: ([\d,]+) events, \1 blocks"))
    expect(body.locator(".textpoint text", has_text="addmm").first).to_be_visible()

    box = plot.bounding_box()
    run.page.tab.mouse.dblclick(box["x"] + 30, box["y"] + box["height"] - 4)
    expect(status).to_contain_text("400,029 events")


def test_the_timeline_is_worked_with_the_keyboard_and_never_has_more_than_two_thousand_bars(run: Shown) -> None:
    body = run.timeline(LONG)
    status = body.locator(".mtprof-count")
    stage = body.get_by_role("group", name="Timeline")
    stage.focus()
    for key in ("+", "+", "+", "ArrowRight", "ArrowLeft", "-", "+"):
        before = status.inner_text()
        stage.press(key)
        if key in "+-":
            expect(status).not_to_have_text(before)
        assert body.locator(".barlayer .trace").last.locator("path").count() <= 2_000
    stage.press("0")
    expect(status).to_contain_text("400,029 events")


def test_no_bar_is_drawn_longer_than_its_event_took(run: Shown) -> None:
    plot = run.timeline().locator(".js-plotly-plot").element_handle()
    run.page.tab.wait_for_function(
        """plot => {
          const trace = plot.data.find((trace) => trace.name === "events");
          const { _length: pixels, range } = plot._fullLayout.xaxis;
          const points = [...plot.querySelectorAll(".barlayer .trace:last-child g.point")];
          const longer = points.filter((point) => {
            const drawn = point.querySelector("path").getBBox().width;
            return drawn > (trace.x[point.__data__.i] * pixels) / (range[1] - range[0]) + 1e-3;
          });
          return points.length > 500 && longer.length === 0;
        }""",
        arg=plot,
        timeout=5_000,
    )


def test_tabs_are_reached_by_arrow_keys(run: Shown) -> None:
    panel = run.panel()
    run.open("Operators")
    panel.get_by_role("tab", name="Operators").focus()
    for key, title in (("ArrowRight", "Lines"), ("ArrowRight", "Timeline"), ("End", "Memory"), ("Home", "Operators")):
        run.page.tab.keyboard.press(key)
        tab = panel.get_by_role("tab", name=title)
        expect(tab).to_be_focused()
        expect(tab).to_have_attribute("aria-selected", "true")
    assert panel.get_by_role("tablist").get_attribute("aria-label")


def test_nothing_moves_when_a_tab_is_opened(run: Shown) -> None:
    heights = set()
    for title in TITLES:
        run.open(title)
        heights.add(run.panel().bounding_box()["height"])

    assert len(heights) == 1


def test_the_panel_follows_the_theme_while_it_is_shown(run: Shown) -> None:
    run.timeline()
    axis = "getComputedStyle(document.querySelector('.mtprof .xtick text')).fill"
    colour = "element => getComputedStyle(element).color"
    light = (run.panel().evaluate(colour), run.page.tab.evaluate(axis))
    run.page.theme("JupyterLab Dark")
    run.page.tab.wait_for_function(f"before => {axis} !== before", arg=light[1])
    dark = (run.panel().evaluate(colour), run.page.tab.evaluate(axis))
    run.page.theme("JupyterLab Light")

    assert brightness(light[0]) < 100 < brightness(dark[0])
    assert brightness(light[1]) < 150 < brightness(dark[1])


def brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return (red + green + blue) / 3


def test_at_500_pixels_nothing_is_cut_off(run: Shown) -> None:
    run.page.tab.set_viewport_size({"width": 620, "height": 950})
    try:
        assert run.panel().bounding_box()["width"] <= 520
        for title in TITLES:
            body = run.open(title)
            body.locator(".mtprof-tools").wait_for()
            cut = body.locator(".mtprof-tools > :not([hidden]), .mtprof-figure").evaluate_all(
                """(elements) => elements.filter((element) => {
                  const [own, panel] = [element, element.closest(".mtprof")].map((one) => one.getBoundingClientRect());
                  return own.right > panel.right + 1 || own.left < panel.left - 1;
                }).length"""
            )
            assert cut == 0, title
    finally:
        run.page.tab.set_viewport_size({"width": 1_250, "height": 950})


def test_a_limit_shows_the_top_rows_and_the_others_on_demand(run: Shown) -> None:
    body = run.open("Operators", BARE)
    expect(body.locator(".mtprof-count")).to_have_text("showing 1 of 2")
    assert labels(body) == ["aten::mm"]
    body.get_by_role("button", name="All rows").click()
    expect(body.locator(".mtprof-count")).to_have_text("showing 2 of 2")
    expect(body.get_by_role("button", name="All rows")).to_be_hidden()


def test_a_tab_without_its_data_names_the_flag_and_an_empty_profile_says_so(run: Shown) -> None:
    expect(run.open("Memory", BARE)).to_contain_text("--profile-memory")
    expect(run.open("Stacks", BARE)).to_contain_text("--with-stack")
    expect(run.panel(EMPTY)).to_contain_text("Nothing was recorded")
    expect(run.panel(EMPTY).get_by_role("tab")).to_have_count(0)


def test_names_of_others_are_shown_as_text_and_never_run(run: Shown) -> None:
    expect(run.panel(HOSTILE).locator(".mtprof-title")).to_have_text(HOSTILE_NAME)
    expect(run.panel(HOSTILE).locator(".mtprof-note").first).to_have_text(HOSTILE_NAME)
    assert labels(run.open("Operators", HOSTILE))[0] == HOSTILE_NAME
    body = run.timeline(HOSTILE)
    label = run.page.settled_box(body.locator(".textpoint text", has_text="<script>"))
    for step in range(5):
        run.page.tab.mouse.move(label["x"] + 20 + step, label["y"] + label["height"] / 2)
        run.page.tab.wait_for_timeout(100)
    expect(body.locator(".hoverlayer")).to_contain_text("<script>")
    run.open("Stacks", HOSTILE).locator("g.slice").first.wait_for()
    run.open("Memory", HOSTILE).locator(".scatterlayer").first.wait_for()

    assert run.panel(HOSTILE).locator("img, script").count() == 0
    assert run.page.tab.evaluate("window.harmed") is None


def test_plotly_comes_once_a_page_and_later_panels_are_light(run: Shown) -> None:
    first, second, *_ = run.nbytes

    assert first > 1_000_000, "the first panel brings plotly.js"
    assert second < 500_000
    assert run.nbytes[LONG] < 500_000
    assert run.page.tab.evaluate("window.Plotly") is None, "the page's own names are left alone"


def test_a_cell_that_runs_again_replaces_its_panel(run: Shown) -> None:
    before = int(run.page.run(len(SHOWS) + 1))
    run.page.run(BARE + 1)
    run.panel(BARE).get_by_role("tab", name="Timeline").wait_for()

    assert int(run.page.run(len(SHOWS) + 1)) == before == len(SHOWS)


@pytest.fixture(scope="module")
def saved(run: Shown, lab: Laboratory) -> str:
    """The notebook as the user saved it, with the state of its widgets, under another name."""
    run.open("Operators")
    run.page.command("docmanager:save")
    notebook = lab.folder / "panel.ipynb"
    (lab.folder / "reopened.ipynb").write_bytes(notebook.read_bytes())
    return "reopened.ipynb"


def test_a_saved_panel_adds_less_than_300_kilobytes_to_its_notebook(saved: str, lab: Laboratory) -> None:
    notebook = json.loads((lab.folder / saved).read_text())
    states = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    for cell in notebook["cells"][1 : len(SHOWS) + 1]:
        (output,) = cell["outputs"]
        view = output["data"]["application/vnd.jupyter.widget-view+json"]
        nbytes = len(json.dumps(output)) + len(json.dumps(states[view["model_id"]]))
        assert nbytes < 300_000
        assert {"text/html", "text/plain"} < set(output["data"])
    assert "plotly.js v" not in json.dumps(states)


def test_a_reopened_notebook_shows_its_panels_without_their_kernel(saved: str, new_page: Callable[[str], Page]) -> None:
    page = new_page(saved)
    shown = Shown(page)
    body = shown.open("Operators")
    body.get_by_role("columnheader", name="Name").click()
    assert labels(body) == sorted(labels(body))
    body.locator(".mtprof-row", has_text="aten::addmm").first.click()

    timeline = shown.open("Timeline")
    expect(timeline.locator(".mtprof-sketch rect[opacity='0.16']").first).to_be_attached()
    expect(timeline.locator(".mtprof-sketch rect:not([opacity='0.16'])").first).to_be_attached()
    assert "aten::addmm" in " ".join(timeline.locator("title").all_text_contents())
    expect(shown.open("Stacks").locator(".mtprof-sketch rect").first).to_be_visible()
    expect(shown.open("Memory").locator(".mtprof-sketch path").first).to_be_visible()
    expect(shown.open("Memory", LONG)).to_contain_text("was not opened while the kernel ran", timeout=8_000)

    # A cell that runs again brings plotly to its own panel, and to those that had only a sketch.
    page.run(0)
    page.run(AGAIN + 1)
    shown.timeline(AGAIN)
    expect(shown.open("Timeline").locator(".barlayer path").first).to_be_attached()
    assert page.problems == []
    page.tab.close()


def test_pictures_of_every_tab_are_taken_where_they_are_wanted(run: Shown, screenshots: Path) -> None:
    for theme in ("Light", "Dark"):
        run.page.theme(f"JupyterLab {theme}")
        for number, size in ((FULL, "small"), (LONG, "large")):
            for title in TITLES:
                body = run.timeline(number) if title == "Timeline" else run.open(title, number)
                body.locator(".mtprof-tools").wait_for()
                run.page.tab.wait_for_timeout(1_000)
                run.panel(number).screenshot(path=screenshots / f"{title}-{size}-{theme}.png".lower())
    run.page.theme("JupyterLab Light")
