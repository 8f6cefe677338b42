"""The panel in a real JupyterLab as a whole: its look, its notes, its weight, and what a saved notebook keeps."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import Locator, expect
from shown_panels import BARE, EMPTY, FULL, HOSTILE, HOSTILE_NAME, LONG, SHOWS, TITLES, Shown, labels

pytestmark = pytest.mark.usefixtures("no_errors_on_the_console")


def test_the_strip_shows_the_key_figures_and_the_phases(run: Shown) -> None:
    strip = run.panel().locator(".mtprof-strip")

    expect(strip.locator(".mtprof-title")).to_have_text("Cell [3]")
    assert strip.locator(".mtprof-figure-title").all_inner_texts() == [
        *("wall", "in ops", "ops", "steps", "threads", "peak memory", "profiler", "hook")
    ]
    assert strip.locator(".mtprof-figure-text").all_inner_texts()[:3] == ["19.2 ms", "22.3 ms", "2,898"]
    bar = strip.get_by_role("img")
    assert bar.get_attribute("aria-label") == (
        "Of the ops' 22.3 ms: forward 28.1 %, backward 47.7 %, optimizer 3.6 %, other 20.7 %"
    )


def test_tabs_are_reached_by_arrow_keys(run: Shown) -> None:
    panel = run.panel()
    run.open("Operators")
    panel.get_by_role("tab", name="Operators").focus()
    for key, title in (("ArrowRight", "Lines"), ("ArrowRight", "Steps"), ("End", "Memory"), ("Home", "Overview")):
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
    body = run.timeline()
    colour = "element => getComputedStyle(element).color"
    light = (run.panel().evaluate(colour), ink(body))
    before = drawn.picture(body)
    run.page.theme("JupyterLab Dark")
    run.page.tab.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before", arg=[drawn.canvas(body).element_handle(), before]
    )
    dark = (run.panel().evaluate(colour), ink(body))
    run.page.theme("JupyterLab Light")

    assert brightness(light[0]) < 100 < brightness(dark[0])
    assert light[1] < 150 < dark[1]


def ink(body: Locator) -> float:
    """The brightness of the strongest text below the axis, where the canvas has nothing else."""
    found: float = drawn.canvas(body).evaluate(
        """canvas => {
          const high = Math.round(16 * devicePixelRatio);
          const { data } = canvas.getContext("2d").getImageData(0, canvas.height - high, canvas.width, high);
          let strongest = 0;
          for (let at = 0; at < data.length; at += 4) if (data[at + 3] > data[strongest + 3]) strongest = at;
          return (data[strongest] + data[strongest + 1] + data[strongest + 2]) / 3;
        }"""
    )
    return found


def brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return (red + green + blue) / 3


def test_at_500_pixels_nothing_is_cut_off(run: Shown) -> None:
    run.page.tab.set_viewport_size({"width": 620, "height": 950})
    try:
        assert run.panel().bounding_box()["width"] <= 520
        for title in TITLES:
            body = run.open(title)
            body.locator(".mtprof-tools, .mtprof-summary-scroll, .mtprof-steps-scroll").wait_for()
            inside = ".mtprof-tools > :not([hidden]), .mtprof-figure, .mtprof-summary-entry, .mtprof-finding"
            cut = body.locator(inside).evaluate_all(
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
    run.page.tab.mouse.move(*drawn.middle(body, HOSTILE_NAME))
    expect(body.get_by_role("tooltip")).to_contain_text("<script>")
    expect(run.open("Stacks", HOSTILE).locator(".mtprof-slice", has_text="<img src").first).to_be_visible()
    drawn.wait_for(run.open("Memory", HOSTILE), "shapes.some(({ label }) => label.includes('<script>'))")

    assert run.panel(HOSTILE).locator("img, script").count() == 0
    assert run.page.tab.evaluate("window.harmed") is None


def test_panels_are_light_and_leave_the_names_of_the_page_alone(run: Shown) -> None:
    assert max(run.nbytes) < 500_000
    assert run.page.tab.evaluate("[window.modules, window.render, window.Plotly]") == [None, None, None]


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
    notebook = lab.folder / f"{__name__}.ipynb"
    (lab.folder / "reopened.ipynb").write_bytes(notebook.read_bytes())
    return "reopened.ipynb"


def test_a_saved_panel_adds_less_than_300_kilobytes_to_its_notebook(saved: str, lab: Laboratory) -> None:
    notebook = json.loads((lab.folder / saved).read_text())
    states = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    for cell in notebook["cells"][1 : len(SHOWS) + 1]:
        page, widget, script = cell["outputs"]
        view = widget["data"]["application/vnd.jupyter.widget-view+json"]
        nbytes = len(json.dumps([page, widget, script])) + len(json.dumps(states[view["model_id"]]))
        assert nbytes < 300_000
        assert set(page["data"]) == {"text/html", "text/markdown", "text/plain"}


def test_a_reopened_notebook_shows_its_panels_without_their_kernel(saved: str, new_page: Callable[[str], Page]) -> None:
    page = new_page(saved)
    shown = Shown(page)
    body = shown.open("Operators")
    body.get_by_role("columnheader", name="Name").click()
    assert labels(body) == sorted(labels(body))
    body.locator(".mtprof-row", has_text="aten::addmm").first.click()

    timeline = shown.open("Timeline")
    drawn.wait_for(timeline, "shapes.some(({ isLit }) => isLit === false)")
    assert {shape["label"] for shape in drawn.bars(timeline) if shape["isLit"]} == {"aten::addmm"}
    before = drawn.picture(timeline)
    timeline.get_by_label("Zoom in").click()
    page.tab.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before", arg=[drawn.canvas(timeline).element_handle(), before]
    )
    stacks = shown.open("Stacks")
    expect(stacks.locator(".mtprof-slice", has_text=re.compile("^addmm$")).first).to_be_visible()
    expect(stacks.locator("[fill-opacity='0.15']").first).to_be_visible()
    drawn.wait_for(shown.open("Memory"), "shapes.some(({ label }) => label.startsWith('peak '))")
    expect(shown.open("Memory", LONG)).to_contain_text("was not opened while the kernel ran")
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
