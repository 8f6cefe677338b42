"""Lines ranked by a column, and in narrow places, on an exported page in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from traces import event, make_trace

from mtprof_nb.recording import Recording

MS = 1_000_000
FILE = "/home/me/train.py"
SOURCE = "x = a + b\ny = model(x)\nfor row in y:\n    total = total + row\n"


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    rows = [event("aten::add", 0, 20 * MS, line=(FILE, 1)), event("aten::mm", 20 * MS, 80 * MS, line=(FILE, 2))]
    rows += [event("aten::add", (80 + at) * MS, (81 + at) * MS, line=(FILE, 4)) for at in range(10)]
    held = [{"time_ns": 1, "nbytes": 4_096, "address": 1, "event": 0}]
    Recording(make_trace(rows, held, sources={FILE: SOURCE})).export_html(tmp_path / "report.html")
    context = browser.new_context(offline=True, viewport={"width": 700, "height": 800})
    shown = context.new_page()
    shown.goto((tmp_path / "report.html").as_uri())
    shown.get_by_role("tab", name="Lines").click()
    shown.locator(".mtprof-line-cost").first.wait_for()
    yield shown
    context.close()


def _numbers(page: Any) -> list[str]:
    return page.locator(".mtprof-line-cost .mtprof-line-at").all_inner_texts()


def test_a_click_on_a_column_ranks_the_lines_and_one_on_source_brings_back_its_order(page: Any) -> None:
    assert _numbers(page) == ["1", "2", "4"]

    page.get_by_role("button", name="Self").click()
    assert _numbers(page) == ["2", "1", "4"]
    expect(page.get_by_role("columnheader", name="Self")).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".mtprof-line-file")).to_have_count(0)

    page.get_by_role("button", name="Ops", exact=True).click()
    assert _numbers(page) == ["4", "1", "2"]
    page.get_by_role("button", name="Allocated").click()
    assert _numbers(page) == ["1"]

    page.get_by_role("button", name="Source").click()
    assert _numbers(page) == ["1", "2", "4"]


def test_a_line_can_be_opened_in_a_ranked_list(page: Any) -> None:
    page.get_by_role("button", name="Self").click()
    page.locator(".mtprof-line-cost").first.click()

    expect(page.locator(".mtprof-line-ops")).to_contain_text("aten::mm")
    expect(page.locator(".mtprof-line-cost").first).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize("width", [700, 820, 1_000])
def test_the_source_has_half_of_the_room_and_stays_while_the_numbers_scroll(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    listing = page.locator(".mtprof-listing")
    source = page.locator(".mtprof-line-cost .mtprof-line-text").first
    before = source.bounding_box()
    assert before["width"] > 0.49 * listing.bounding_box()["width"]

    listing.evaluate("one => (one.scrollLeft = one.scrollWidth)")
    assert source.bounding_box() == before
    expect(page.get_by_role("columnheader", name="Allocated")).to_be_in_viewport(ratio=0.9)


def test_a_file_has_its_name_and_on_hover_its_folder(page: Any) -> None:
    title = page.locator(".mtprof-line-file b")
    expect(title).to_have_text("train.py")
    expect(title).to_have_attribute("title", FILE)

    page.get_by_role("tab", name="Memory").click()
    largest = page.get_by_role("grid", name="Largest allocations").locator(".mtprof-row .mtprof-in-name")
    expect(largest).to_have_text("aten::addtrain.py:1")
    expect(largest).to_have_attribute("title", f"aten::add\n{FILE}:1")


def test_the_title_of_a_file_stays_above_lines_that_are_scrolled_below_it(browser: Any, tmp_path: Path) -> None:
    rows = [event("aten::add", at * MS, (at + 1) * MS, line=(FILE, at + 1)) for at in range(80)]
    long = "\n".join(f"total_{at} = left_{at} + right_{at}" for at in range(80))
    Recording(make_trace(rows, sources={FILE: long})).export_html(tmp_path / "report.html")
    shown = browser.new_page(viewport={"width": 700, "height": 500})
    shown.goto((tmp_path / "report.html").as_uri())
    shown.get_by_role("tab", name="Lines").click()
    shown.locator(".mtprof-line-cost").nth(60).evaluate("line => line.scrollIntoView({ block: 'center' })")

    title = shown.locator(".mtprof-line-file")
    box = title.bounding_box()
    drawn_there = "([x, y]) => document.elementFromPoint(x, y).closest('.mtprof-line-file') !== null"
    assert shown.evaluate(drawn_there, [box["x"] + 60, box["y"] + box["height"] / 2])
    assert shown.evaluate(drawn_there, [box["x"] + box["width"] - 20, box["y"] + box["height"] / 2])
    shown.close()
