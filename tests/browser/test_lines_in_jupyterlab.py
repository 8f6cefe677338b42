"""The lines tab in a real JupyterLab: the source with its cost, ops on a click, and the selection shared."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect

HOSTILE = "<img src=x onerror=window.harmed=1>"
SETUP = f"""
from mtprof_nb.views.panel import show_panel as panel
from traces import event, make_trace

CELL = "<ipython-input-9-0>"
text = ["%%mtprofile"] + [f"x{{n}} = {{n}}" for n in range(2, 60)]
text[44], text[50] = "y = model(x)", "loss.backward()  # {HOSTILE}"
trace = make_trace(
    [
        event("aten::add", 0, 1_000, line=(CELL, 3)),
        event("aten::mm", 1_000, 5_000, line=(CELL, 45)),
        event("aten::ones_like", 5_000, 5_500, line=(CELL, 51)),
        event("aten::mm", 6_000, 12_000, line=(CELL, 51), forward=1, phase="backward"),
        event("aten::add_", 12_000, 13_000, line=("train.py", 7), phase="optimizer"),
        event("aten::copy_", 13_000, 13_100),
    ],
    sources={{CELL: "\\n".join(text)}},
    lines_note="no line marks inside functions {HOSTILE}",
)
"""


@pytest.fixture(scope="module")
def page(lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Page]:
    page = new_page(lab.write("lines.ipynb", [SETUP, "panel.show(trace)"]))
    page.run(0)
    page.run(1)
    yield page
    page.tab.close()


@pytest.fixture
def body(page: Page) -> Iterator[Any]:
    panel = page.panel()
    panel.get_by_role("tab", name="Lines").click()
    body = panel.locator(".mtprof-body.mtprof-lines")
    body.locator(".mtprof-line-cost").first.wait_for()
    yield body
    if panel.locator(".mtprof-chip").is_visible():
        panel.locator(".mtprof-chip").click()
    assert page.problems == []
    assert page.tab.evaluate("window.harmed") is None


def line(body: Any, number: int) -> Any:
    """The row of one line of the cell."""
    return body.locator(
        ".mtprof-line-cost", has=body.page.locator(".mtprof-line-at", has_text=re.compile(f"^{number}$"))
    )


def is_in_view(body: Any, row: Any) -> bool:
    """Whether the list is scrolled to a row of it."""
    stage, own = body.locator(".mtprof-listing").bounding_box(), row.bounding_box()
    return stage["y"] <= own["y"] and own["y"] + own["height"] <= stage["y"] + stage["height"]


def test_the_hottest_line_is_in_view_at_once(body: Any) -> None:
    hot = body.locator(".mtprof-line-hot")

    expect(hot).to_have_count(1)
    expect(hot.locator(".mtprof-line-text")).to_have_text("y = model(x)")
    assert is_in_view(body, hot)


def test_a_line_shows_its_time_split_into_phases(body: Any) -> None:
    cells = line(body, 45).locator(".mtprof-line-number").all_inner_texts()

    assert cells == ["10.0 µs", "76.3 %", "10.0 µs", "2"]
    bars = line(body, 45).locator(".mtprof-line-bars")
    assert bars.get_attribute("aria-label") == "forward 4.00 µs, backward 6.00 µs"
    widths = [bars.locator(f".mtprof-phase-{phase}").bounding_box()["width"] for phase in ("forward", "backward")]
    assert widths[1] / widths[0] == pytest.approx(1.5, rel=0.05)


OUTSIDE = """
from dataclasses import replace
from mtprof_nb.model.trace import OutsideOps, SourceLine
times = {3: 0, 20: 90_000, 45: 10_000}
panel.show(replace(trace, outside={SourceLine(CELL, line): OutsideOps(ns, ns) for line, ns in times.items()}))
"""


def test_time_outside_ops_is_seen_on_its_line_also_where_no_op_ran(
    lab: Laboratory, new_page: Callable[[str], Page]
) -> None:
    page = new_page(lab.write("outside.ipynb", [SETUP, OUTSIDE]))
    page.run(0)
    page.run(1)
    panel = page.panel()
    panel.get_by_role("tab", name="Lines").click()
    body = panel.locator(".mtprof-body.mtprof-lines")
    hot = body.locator(".mtprof-line-hot")
    expect(hot.locator(".mtprof-line-text")).to_have_text("x20 = 20")

    assert is_in_view(body, hot)
    titles = body.locator(".mtprof-line-head .mtprof-line-number").all_inner_texts()
    assert titles == ["Time", "Share", "Outside", "Total", "Ops"]
    assert hot.locator(".mtprof-line-number").all_inner_texts() == ["90.0 µs", "79.9 %", "90.0 µs", "90.0 µs", "–"]
    assert line(body, 3).locator(".mtprof-line-number").nth(2).inner_text() == "–"
    bars = line(body, 45).locator(".mtprof-line-bars")
    assert bars.get_attribute("aria-label") == "forward 4.00 µs, backward 6.00 µs, outside ops 10.0 µs"
    longest = hot.locator(".mtprof-line-bar").bounding_box()["width"]
    assert longest / bars.locator(".mtprof-line-bar").bounding_box()["width"] == pytest.approx(90 / 20, rel=0.05)
    hot.click()
    expect(panel.locator(".mtprof-chip")).to_be_hidden()
    assert page.problems == []
    page.tab.close()


def test_every_line_of_the_cell_is_there_and_other_files_follow(body: Any) -> None:
    titles = body.locator(".mtprof-line-file b").all_inner_texts()

    assert titles == ["<ipython-input-9-0>", "train.py"]
    assert body.locator(".mtprof-line-text").nth(1).inner_text() == "%%mtprofile"
    assert body.locator(".mtprof-line-rest .mtprof-line-text").inner_text() == "(unattributed)"
    expect(line(body, 51).locator(".mtprof-line-text")).to_contain_text(HOSTILE)
    expect(body.get_by_role("note")).to_have_text(f"no line marks inside functions {HOSTILE}")


def test_a_click_shows_the_ops_of_a_line_and_another_hides_them(page: Page, body: Any) -> None:
    line(body, 45).click()
    ops = body.locator("button.mtprof-line-op")

    expect(ops).to_have_count(2)
    assert ops.all_inner_texts() == ["aten::mm backward, 1 ×, 6.00 µs", "aten::mm forward, 1 ×, 4.00 µs"]
    expect(page.panel().locator(".mtprof-chip")).to_have_text("<ipython-input-9-0>:45 ×")
    line(body, 45).click()
    expect(ops).to_have_count(0)
    expect(page.panel().locator(".mtprof-chip")).to_be_hidden()


def test_an_op_of_a_line_is_found_in_the_table(page: Page, body: Any) -> None:
    line(body, 3).click()
    body.locator("button.mtprof-line-op", has_text="aten::add").click()
    panel = page.panel()
    expect(panel.locator(".mtprof-chip")).to_have_text("aten::add ×")
    expect(body.locator("button.mtprof-line-op")).to_have_count(1)

    panel.get_by_role("tab", name="Operators").click()
    expect(panel.locator(".mtprof-operators .mtprof-selected .mtprof-label")).to_have_text("aten::add")


def test_the_lines_that_ran_a_selected_op_are_marked(page: Page, body: Any) -> None:
    panel = page.panel()
    panel.get_by_role("tab", name="Operators").click()
    panel.locator(".mtprof-row", has=page.tab.get_by_text("aten::mm", exact=True)).click()
    panel.get_by_role("tab", name="Lines").click()
    marked = body.locator(".mtprof-line-lit")
    expect(marked).to_have_count(1)
    expect(marked.locator(".mtprof-line-at")).to_have_text("45")
    assert is_in_view(body, marked)

    panel.get_by_role("tab", name="Operators").click()
    panel.locator(".mtprof-row", has=page.tab.get_by_text("aten::copy_", exact=True)).click()
    panel.get_by_role("tab", name="Lines").click()
    expect(marked.locator(".mtprof-line-text")).to_have_text("(unattributed)")
    assert is_in_view(body, marked)
    panel.locator(".mtprof-chip").click()
    expect(marked).to_have_count(0)


def test_a_selected_line_is_lit_in_the_timeline(page: Page, body: Any) -> None:
    line(body, 45).click()
    panel = page.panel()
    panel.get_by_role("tab", name="Timeline").click()
    timeline = panel.locator(".mtprof-body.mtprof-timeline")
    drawn.wait_for(timeline, "shapes.filter(({ isLit }) => isLit === false).length >= 3")
    assert sum(bar["isLit"] for bar in drawn.bars(timeline)) >= 2


def test_lines_are_walked_with_the_keyboard(page: Page, body: Any) -> None:
    listing = body.locator(".mtprof-listing")
    listing.focus()
    listing.press("Home")
    expect(body.locator(".mtprof-cursor .mtprof-line-at")).to_have_text("3")
    listing.press("ArrowDown")
    expect(body.locator(".mtprof-cursor .mtprof-line-at")).to_have_text("45")
    listing.press("Enter")
    expect(body.locator(".mtprof-line-ops")).to_have_count(1)
    listing.press("Escape")
    expect(body.locator(".mtprof-line-ops")).to_have_count(0)
    body.get_by_role("button", name="Hottest line").click()
    expect(body.locator(".mtprof-cursor")).to_have_class(re.compile("mtprof-line-hot"))
