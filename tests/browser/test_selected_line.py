"""A line that is selected in an exported page, and a search: every tab marks what belongs to it."""

from pathlib import Path
from typing import Any

import drawn
import pytest
from playwright.sync_api import expect
from traces import event, make_trace

from mtprof_nb.recording import Recording

MS = 1_000_000
FILE = "/home/me/train.py"


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    """The page of two lines, of which the second runs two kinds of ops and allocates."""
    rows = [
        event("aten::add", 0, 20 * MS, line=(FILE, 1)),
        event("aten::mm", 20 * MS, 60 * MS, line=(FILE, 2)),
        event("aten::relu", 60 * MS, 90 * MS, line=(FILE, 2)),
    ]
    held = [
        {"time_ns": 1, "nbytes": 4_096, "address": 1, "event": 0},
        {"time_ns": 21 * MS, "nbytes": 8_192, "address": 2, "event": 1},
    ]
    Recording(make_trace(rows, held, sources={FILE: "x = a + b\ny = f(x)\n"})).export_html(tmp_path / "report.html")
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 800})
    shown = context.new_page()
    shown.goto((tmp_path / "report.html").as_uri())
    shown.get_by_role("tab", name="Lines").click()
    shown.locator(".mtprof-line-cost", has_text="y = f(x)").click()
    yield shown
    context.close()


def test_operators_and_allocations_of_the_line_are_marked(page: Any) -> None:
    page.get_by_role("tab", name="Operators").click()
    lit = page.locator(".mtprof-operators .mtprof-row.mtprof-lit")
    expect(lit).to_have_count(2)
    assert {text.split("\n")[0] for text in lit.all_inner_texts()} == {"aten::mm", "aten::relu"}

    page.get_by_role("tab", name="Memory").click()
    expect(page.locator(".mtprof-memory .mtprof-row.mtprof-lit")).to_have_count(1)
    expect(page.locator(".mtprof-memory .mtprof-row.mtprof-lit")).to_contain_text("aten::mm")

    page.locator(".mtprof-chip").click()
    expect(page.locator(".mtprof-memory .mtprof-row.mtprof-lit")).to_have_count(0)
    page.get_by_role("tab", name="Operators").click()
    expect(lit).to_have_count(0)


def test_a_search_is_for_all_tabs(page: Any) -> None:
    page.locator(".mtprof-chip").click()
    page.get_by_label("Search in all tabs").fill("relu")
    page.get_by_role("tab", name="Operators").click()
    expect(page.locator(".mtprof-operators .mtprof-row .mtprof-label")).to_have_text(["aten::relu"])

    page.get_by_role("tab", name="Timeline").click()
    timeline = page.locator(".mtprof-timeline")
    drawn.wait_for(timeline, "shapes.some(({ isLit }) => isLit === false)")
    assert {bar["label"] for bar in drawn.bars(timeline) if bar["isLit"]} == {"aten::relu"}

    page.get_by_role("tab", name="Memory").click()
    expect(page.locator(".mtprof-memory .mtprof-row")).to_have_count(0)

    page.get_by_label("Search in all tabs").fill("f(x)")
    page.get_by_role("tab", name="Lines").click()
    expect(page.locator(".mtprof-line-cost.mtprof-line-missed")).to_have_count(1)
    expect(page.locator(".mtprof-line-missed.mtprof-line-cost")).to_contain_text("x = a + b")

    page.get_by_label("Search in all tabs").fill("")
    expect(page.locator(".mtprof-line-missed")).to_have_count(0)
