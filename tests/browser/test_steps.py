"""The steps tab of an exported page, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from traces import event, make_trace

from mtprof_nb.recording import Recording

MS = 1_000_000
FILE = "/home/me/train.py"


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    """The page of five steps, of which one is slow."""
    rows, at = [], 0
    for step, length in enumerate((10, 10, 40, 10, 12)):
        rows.append(event("aten::mm", at * MS, (at + length) * MS, step=step, line=(FILE, 2)))
        at += length + 2
    trace = make_trace(rows, ended_ns=at * MS, sources={FILE: "for x in data:\n    y = x @ w\n"})
    Recording(trace).export_html(tmp_path / "report.html")
    context = browser.new_context(offline=True, viewport={"width": 900, "height": 700})
    shown = context.new_page()
    shown.goto((tmp_path / "report.html").as_uri())
    shown.get_by_role("tab", name="Steps").click()
    yield shown
    context.close()


def test_steps_have_bars_as_high_as_they_are_long(page: Any) -> None:
    bars = page.get_by_role("list", name="Duration of each step").get_by_role("listitem")
    expect(bars).to_have_count(5)
    expect(bars.nth(2)).to_have_attribute("aria-label", "Step 2: 42.0 ms (forward 40.0 ms, outside ops 2.00 ms)")
    heights = [bar.bounding_box()["height"] for bar in bars.all()]
    assert heights[2] == max(heights)
    assert heights[0] / heights[2] == pytest.approx(12 / 42, abs=0.02)
    expect(page.get_by_role("tabpanel")).to_contain_text(
        "5 steps; median 12.0 ms, 80 % of them from 12.0 ms to 42.0 ms"
    )


def test_a_slow_step_leads_to_the_line_that_takes_longer(page: Any) -> None:
    slow = page.locator(".mtprof-slow-step")
    expect(slow).to_have_count(1)
    expect(slow).to_contain_text("Step 2 42.0 ms, 3.5 × the median")
    expect(slow).to_contain_text("train.py:2 40.0 ms instead of 10.0 ms")

    slow.get_by_role("button", name="train.py:2").click()

    expect(page.get_by_role("tab", name="Lines")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".mtprof-line-cost[aria-selected=true]")).to_contain_text("y = x @ w")
