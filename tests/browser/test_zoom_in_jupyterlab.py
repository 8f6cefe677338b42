"""A panel that nobody has touched yet: one drag zooms, and every way back brings the whole recording."""

from collections.abc import Callable, Iterator
from typing import Any

import drawn
import pytest
from laboratory import Laboratory, Page

SETUP = """
from mtprof_nb.views.panel import show_panel as panel
from traces import event, make_trace

trace = make_trace(
    [event("aten::mm", at, at + 900_000) for at in range(0, 100_000_000, 1_000_000)],
    allocations=[{"time_ns": at, "nbytes": 64, "event": 0} for at in range(0, 100_000_000, 1_000_000)],
)
"""
DIFFERS = "([canvas, before]) => canvas.toDataURL() !== before"
WAYS_BACK: dict[str, Callable[[Page, Any, Any], None]] = {
    "button": lambda page, body, plot: body.get_by_title("Show the whole recording").click(),
    "double click": lambda page, body, plot: page.tab.mouse.dblclick(plot["x"] + 30, plot["y"] + plot["height"] - 4),
    "key 0": lambda page, body, plot: body.get_by_role("group", name="double-click").press("0"),
}


@pytest.fixture(scope="module")
def page(lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Page]:
    page = new_page(lab.write("zoom.ipynb", [SETUP, *["panel.show(trace)"] * len(WAYS_BACK)]))
    for number in range(len(WAYS_BACK) + 1):
        page.run(number)
    yield page
    assert page.problems == []
    page.tab.close()


@pytest.mark.parametrize("title", ["Timeline", "Memory"])
@pytest.mark.parametrize("way", WAYS_BACK)
def test_after_the_first_zoom_of_all_the_whole_recording_comes_back(page: Page, title: str, way: str) -> None:
    panel = page.panel([*WAYS_BACK].index(way))
    panel.get_by_role("tab", name=title).click()
    body = panel.get_by_role("tabpanel")
    drawn.wait_for(body, "shapes.length > 0")
    # Python's answer has come, and nothing is drawn anew.
    page.tab.wait_for_timeout(500)
    plot, whole = drawn.canvas(body), drawn.picture(body)

    page.drag(plot, 0.3, 0.5)
    page.tab.mouse.move(0, 0)
    page.tab.wait_for_function(DIFFERS, arg=[plot.element_handle(), whole])
    WAYS_BACK[way](page, body, page.settled_box(plot))
    page.tab.mouse.move(0, 0)
    page.tab.wait_for_function(DIFFERS.replace("!==", "==="), arg=[plot.element_handle(), whole])
    if title == "Timeline":
        # The small picture of the whole marks no part of it any more.
        assert body.locator(".mtprof-window.mtprof-whole").count() == 1
