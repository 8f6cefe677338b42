"""A saved notebook that is opened again in a real JupyterLab, with the state of its widgets and without it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect

SETUP = """
from mtprof_nb.views.panel import show_panel as panel
from synthetic import training_run
trace = training_run(3_000)
"""
CELLS = [SETUP, "panel.show(trace)", "panel.panel(trace)", "panel.show(trace)\nprint('between')\npanel.show(trace)"]
PANELS = 4
PAGE = "[data-mtprof-page]"
VIEW = "application/vnd.jupyter.widget-view+json"
SAVE_STATE = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"


@pytest.fixture(scope="module")
def live(lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Page]:
    page = new_page(lab.write("live.ipynb", CELLS))
    for number in range(len(CELLS)):
        page.run(number)
    page.panel(PANELS - 1).locator(".mtprof-summary-sentence").wait_for()
    yield page
    page.tab.close()


@pytest.fixture(scope="module")
def without_state(live: Page, lab: Laboratory) -> str:
    """Saved as JupyterLab saves by default."""
    live.command(SAVE_STATE)
    live.tab.wait_for_timeout(500)
    live.command("docmanager:save")
    live.command(SAVE_STATE)
    name = copied(lab, "without_state.ipynb")
    assert "widgets" not in lab.read(name).metadata
    return name


@pytest.fixture(scope="module")
def with_state(live: Page, without_state: str, lab: Laboratory) -> str:
    """Saved after the notebook without its widgets: what is in the file once, JupyterLab keeps there."""
    live.tab.wait_for_timeout(500)
    live.command("docmanager:save")
    name = copied(lab, "with_state.ipynb")
    assert "widgets" in lab.read(name).metadata
    return name


def copied(lab: Laboratory, name: str) -> str:
    (lab.folder / name).write_bytes((lab.folder / "live.ipynb").read_bytes())
    return name


@pytest.fixture
def reopened(new_page: Callable[[str], Page]) -> Iterator[Callable[[str], Page]]:
    pages: list[Page] = []

    def opened(name: str) -> Page:
        pages.append(new_page(name))
        return pages[-1]

    yield opened
    for page in pages:
        page.tab.close()


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells[1:] for output in cell.outputs]


def test_a_live_panel_stands_alone(live: Page) -> None:
    expect(live.tab.locator(".mtprof")).to_have_count(PANELS)
    expect(live.tab.locator(PAGE)).to_have_count(PANELS)
    expect(live.tab.locator(PAGE).locator("visible=true")).to_have_count(0)
    rows = live.tab.locator(".jp-OutputArea-child").locator("visible=true")
    expect(rows).to_have_count(PANELS + 1)
    assert live.problems == []


def test_the_page_is_saved_once_a_panel(without_state: str, lab: Laboratory) -> None:
    saved = lab.read(without_state)
    pages = [output for output in outputs(saved) if "text/html" in output.get("data", {})]

    assert [output["output_type"] for output in outputs(saved)] == [
        *(["display_data"] * 3),
        *(["display_data"] * 3),
        *(["display_data"] * 3),
        "stream",
        *(["display_data"] * 3),
    ]
    assert json.dumps(saved).count("img alt=") == 2 * len(pages) == 2 * PANELS


def test_without_widget_state_the_panel_is_drawn_by_the_page_and_no_error_shows(
    without_state: str, reopened: Callable[[str], Page]
) -> None:
    page = reopened(without_state)
    expect(page.tab.locator(PAGE).locator("visible=true")).to_have_count(PANELS)
    expect(page.tab.get_by_text("Error displaying widget")).to_have_count(PANELS)
    expect(page.tab.get_by_text("Error displaying widget").locator("visible=true")).to_have_count(0)
    for number in range(PANELS):
        page.tab.locator(PAGE).nth(number).scroll_into_view_if_needed()
        page.tab.locator(PAGE).nth(number).get_by_role("tab", name="Operators").click()
        page.tab.locator(PAGE).nth(number).locator(".mtprof-row").first.wait_for()
    rows = page.tab.locator(".jp-OutputArea-child").locator("visible=true")
    expect(rows).to_have_count(PANELS + 1)
    expect(page.tab.locator("img[title='Timeline']").locator("visible=true")).to_have_count(0)

    panel = page.panel()
    panel.get_by_role("columnheader", name="Name").click()
    labels = panel.locator(".mtprof-row .mtprof-label").all_inner_texts()
    assert labels == sorted(labels)
    panel.locator(".mtprof-row", has_text="aten::addmm").first.click()
    panel.get_by_role("tab", name="Timeline").click()
    timeline = panel.get_by_role("tabpanel")
    drawn.wait_for(timeline, "shapes.some(({ isLit }) => isLit)")
    timeline.get_by_label("Zoom in").click()
    expect(timeline.locator(".mtprof-count")).to_contain_text("9.58 ms")
    expect(panel.get_by_text("The kernel is gone or busy")).to_be_visible()
    assert [problem for problem in page.problems if "widget" not in problem.lower()] == []


LOOKS = "e => ['font', 'margin', 'padding', 'background', 'whiteSpace'].map((name) => getComputedStyle(e)[name])"


def test_the_overview_of_the_page_looks_as_that_of_the_panel(
    live: Page, without_state: str, reopened: Callable[[str], Page]
) -> None:
    page = reopened(without_state)
    expect(page.tab.get_by_text("Error displaying widget")).to_have_count(PANELS)

    for shown in (
        ".mtprof-summary-sentence",
        ".mtprof-summary-head",
        ".mtprof-summary-quiet",
        ".mtprof-summary-name code",
    ):
        assert page.panel().locator(shown).first.evaluate(LOOKS) == live.panel().locator(shown).first.evaluate(LOOKS)


def test_a_cell_that_runs_again_has_its_panel_back(without_state: str, reopened: Callable[[str], Page]) -> None:
    page = reopened(without_state)
    expect(page.tab.get_by_text("Error displaying widget")).to_have_count(PANELS)
    page.run(0)
    page.run(1)
    page.panel().locator(".mtprof-summary-sentence").wait_for()

    expect(page.tab.locator(PAGE).locator("visible=true")).to_have_count(PANELS - 1)
    expect(page.tab.locator(PAGE).first).to_be_hidden()


def test_with_widget_state_the_panel_shows_and_no_page(with_state: str, reopened: Callable[[str], Page]) -> None:
    page = reopened(with_state)
    page.panel(PANELS - 1).locator(".mtprof-summary-sentence").wait_for()

    expect(page.tab.locator(".mtprof").locator("visible=true")).to_have_count(PANELS)
    expect(page.tab.locator(PAGE).locator("visible=true")).to_have_count(0)
    assert page.problems == []


def test_a_notebook_of_somebody_else_shows_the_page(
    without_state: str, lab: Laboratory, reopened: Callable[[str], Page]
) -> None:
    foreign = lab.read(without_state)
    foreign.metadata["written"] = "elsewhere"
    (lab.folder / "foreign.ipynb").write_text(json.dumps(foreign))
    tab = reopened("foreign.ipynb").tab

    expect(tab.get_by_text("Lines by time").locator("visible=true")).to_have_count(PANELS)
    tab.wait_for_timeout(3_000)
    expect(tab.get_by_text("Error displaying widget")).to_have_count(0)
    expect(tab.locator("img[title='Timeline']").first).to_be_visible()
