"""Keys in the panel, in a real JupyterLab: they stay there, and are no commands of the notebook."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect

SETUP = """
from mtprof_nb.views.panel import show_panel as panel
from synthetic import training_run
trace = training_run(3_000)
"""
#: Commands of the notebook, such as: Markdown, insert, cut, paste, delete, run, merge, move, restart.
COMMANDS = ["m", "r", "b", "a", "x", "c", "v", "z", "d", "d", "j", "k", "Shift+Enter", "Alt+Enter", "Control+Backspace"]
COMMANDS += ["Shift+m", "Control+Shift+M", "Control+Shift+ArrowUp", "1", "o", "Shift+l", "Control+Enter", "0", "0"]
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => [
  cell.model.type, cell.model.sharedModel.getSource(), cell.model.executionCount
])"""


@pytest.fixture(scope="module")
def page(lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Page]:
    page = new_page(lab.write("keys.ipynb", [SETUP, "panel.show(trace)", "after = 1"]))
    page.run(0)
    page.run(1)
    opened(page, "Operators").locator(".mtprof-row").first.wait_for()
    yield page
    page.tab.close()


def the_row(page: Page) -> Any:
    return opened(page, "Operators").locator(".mtprof-row").nth(2)


def the_filter(page: Page) -> Any:
    opened(page, "Operators")
    return page.panel().get_by_role("searchbox")


def the_timeline(page: Page) -> Any:
    return opened(page, "Timeline").get_by_role("button", name="Zoom in", exact=True)


def the_line(page: Page) -> Any:
    return opened(page, "Lines").locator(".mtprof-line-cost").first


def opened(page: Page, title: str) -> Any:
    panel = page.panel()
    panel.get_by_role("tab", name=title).click()
    return panel.get_by_role("tabpanel")


def the_tab(page: Page) -> Any:
    return page.panel().get_by_role("tab", name="Stacks")


@pytest.mark.parametrize("focused", [the_row, the_filter, the_timeline, the_line, the_tab])
def test_no_key_in_the_panel_is_a_command_of_the_notebook(page: Page, focused: Callable[[Page], Any]) -> None:
    before = page.tab.evaluate(CELLS)
    focused(page).click()
    for key in COMMANDS:
        page.tab.keyboard.press(key)

    page.tab.wait_for_timeout(300)
    assert page.tab.evaluate(CELLS) == before
    expect(page.panel()).to_be_visible()
    expect(page.tab.locator(".jp-Dialog")).to_have_count(0)
    assert page.problems == []


def test_the_panel_s_own_keys_work(page: Page) -> None:
    the_filter(page).fill("")
    row = the_row(page)
    row.click()
    page.tab.keyboard.press("Home")
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("Enter")

    expect(page.panel().locator(".mtprof-row").nth(1)).to_have_attribute("aria-selected", "true")
    page.tab.keyboard.press("Escape")
    expect(page.panel().locator(".mtprof-row[aria-selected='true']")).to_have_count(0)
    assert page.tab.evaluate("document.activeElement.getAttribute('role')") == "grid", "the first Escape unselects"


def test_text_is_typed_into_the_filter_and_escape_clears_it(page: Page) -> None:
    field = the_filter(page)
    field.click()
    field.fill("")
    page.tab.keyboard.type("max")
    expect(field).to_have_value("max")
    page.tab.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(field).to_be_focused()


def test_the_notebook_is_saved_from_inside_the_panel(page: Page, lab: Laboratory) -> None:
    page.tab.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.sharedModel.setSource('b = 2')"
    )
    the_row(page).click()
    page.tab.keyboard.press("Control+s")

    page.tab.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    assert lab.read("keys.ipynb").cells[2].source == "b = 2"


def test_escape_leaves_the_panel_and_keys_are_the_notebook_s_again(page: Page) -> None:
    the_row(page).click()
    for _ in range(2):
        page.tab.keyboard.press("Escape")
    assert not page.panel().evaluate("panel => panel.contains(document.activeElement)")

    count = len(page.tab.evaluate(CELLS))
    page.tab.keyboard.press("b")
    page.tab.wait_for_function(f"({CELLS})().length === {count + 1}")
