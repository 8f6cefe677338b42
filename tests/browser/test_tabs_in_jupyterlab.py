"""The tabs of the panel in a real JupyterLab: tables, selection, timeline and stacks, by mouse and by keyboard."""

import re
from typing import Any

import drawn
import pytest
from playwright.sync_api import expect
from shown_panels import AGAIN, LONG, Shown, labels

FADED = "[fill-opacity='0.15']"
PLACE = "rect => ['x', 'y', 'width', 'height'].map((name) => rect.getAttribute(name))"
pytestmark = pytest.mark.usefixtures("no_errors_on_the_console")


def cells(body: Any, column: int) -> list[str]:
    """The texts of the visible rows in a column."""
    return [row.locator(".mtprof-cell").nth(column).inner_text() for row in body.locator(".mtprof-row").all()]


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
    box, count = run.panel().get_by_label("Search in all tabs"), body.locator(".mtprof-count")
    regex = run.panel().get_by_role("button", name="regular expression")
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
    body.get_by_role("button", name="Markdown").click()
    expect(body.locator(".mtprof-count")).to_have_text("copied 27 rows")
    table = run.page.tab.evaluate("navigator.clipboard.readText()").splitlines()
    assert table[0].startswith("| Name | Calls | Self | Share |")
    assert (len(table), table[2][:22]) == (29, "| `aten::mm` | 276 | 6")
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
    drawn.wait_for(timeline, "shapes.some(({ isLit }) => isLit === false)")
    lit = {bar["label"] for bar in drawn.bars(timeline) if bar["isLit"]}
    assert "aten::addmm" in lit
    assert "aten::randn" not in lit
    stacks = run.open("Stacks")
    expect(stacks.locator(FADED).first).to_be_attached()
    slice_ = stacks.locator(".mtprof-slice", has_text=re.compile("^addmm$"))
    expect(slice_.locator("rect").first).to_have_attribute("fill-opacity", "1")

    chip.click()
    expect(chip).to_be_hidden()
    expect(stacks.locator(FADED)).to_have_count(0)


def test_a_click_on_an_event_or_a_slice_selects_its_row(run: Shown) -> None:
    body = run.timeline()
    run.page.drag(drawn.canvas(body), 0.30, 0.34)
    expect(body.locator(".mtprof-count")).not_to_contain_text("2,967 events")
    run.page.tab.mouse.click(*drawn.middle(body, "AddmmBackward0"))
    chip = run.panel().locator(".mtprof-chip")
    expect(chip).to_have_text("AddmmBackward0 ×")

    stacks = run.open("Stacks")
    stacks.locator(".mtprof-slice", has_text=re.compile("^randn$")).click()
    expect(chip).to_have_text("aten::randn ×")
    operators = run.open("Operators")
    expect(operators.get_by_role("row", selected=True)).to_contain_text("aten::randn")
    chip.click()


def test_the_pointer_is_told_what_it_is_on(run: Shown) -> None:
    body = run.timeline()
    run.page.drag(drawn.canvas(body), 0.30, 0.34)
    expect(body.locator(".mtprof-count")).not_to_contain_text("2,967 events")
    run.page.tab.mouse.move(*drawn.middle(body, "AddmmBackward0"))
    tooltip = re.compile(r"AddmmBackward0.*µs.*backward, step \d.*train.py:21")
    expect(body.get_by_role("tooltip")).to_contain_text(tooltip)
    run.page.tab.mouse.move(0, 0)
    expect(body.get_by_role("tooltip")).to_have_count(0)

    memory = run.open("Memory")
    drawn.wait_for(memory, "shapes.length > 0")
    box = run.page.settled_box(drawn.canvas(memory))
    run.page.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(memory.get_by_role("tooltip")).to_contain_text(re.compile(r"iB on cpu, at .* by aten::|Backward0"))
    run.page.tab.mouse.move(0, 0)
    run.open("Stacks").locator(".mtprof-slice").first.hover()
    expect(run.panel().get_by_role("tooltip")).to_contain_text("100.0 % of all")


def test_every_slice_of_an_icicle_with_room_for_it_has_a_name(run: Shown) -> None:
    run.open("Stacks", AGAIN).locator(".mtprof-slice").first.wait_for()
    nameless = run.page.tab.evaluate(
        """() => [...document.querySelectorAll(".mtprof-slice")].filter((slice) =>
          slice.querySelector("rect").getBoundingClientRect().width > 60 && !slice.querySelector("text")).length"""
    )

    assert nameless == 0


def test_a_zoomed_icicle_stays_where_it_is_when_something_is_selected(run: Shown) -> None:
    chip = run.panel(AGAIN).locator(".mtprof-chip")
    stacks = run.open("Stacks", AGAIN)
    focus = stacks.locator(".mtprof-slice", has_text=re.compile("^AddmmBackward0$"))
    beside = stacks.locator(".mtprof-slice", has_text=re.compile("^linear$"))
    expect(beside.first).to_be_visible()
    focus.click()
    expect(chip).to_have_text("AddmmBackward0 ×")
    expect(beside).to_have_count(0)
    zoomed = run.page.settled_box(focus.locator("rect"))
    assert zoomed["width"] > 0.95 * stacks.bounding_box()["width"]
    run.page.tab.mouse.move(0, 0)
    place = focus.locator("rect").evaluate(PLACE)

    run.open("Operators", AGAIN).locator(".mtprof-row", has_text="aten::sum").first.click()
    expect(run.open("Stacks", AGAIN).locator(FADED).first).to_be_attached()
    assert focus.locator("rect").evaluate(PLACE) == place
    chip.click()
    expect(stacks.locator(FADED)).to_have_count(0)
    assert focus.locator("rect").evaluate(PLACE) == place
    # By another number slices are others.
    stacks.get_by_label("Size by").select_option("count")
    expect(beside.first).to_be_visible()
    stacks.get_by_label("Size by").select_option("self")


def test_stacks_are_walked_with_the_keyboard_in_either_shape(run: Shown) -> None:
    stacks = run.open("Stacks", AGAIN)
    tree, cursor = stacks.get_by_role("tree"), stacks.locator(".mtprof-slice.mtprof-cursor")
    for shape in ("Sunburst", "Icicle"):
        stacks.get_by_role("button", name=shape).click()
        tree.focus()
        for _ in range(6):
            tree.press("ArrowUp")
        root = cursor.get_attribute("aria-label")
        tree.press("ArrowDown")
        expect(cursor).to_have_attribute("aria-level", "2")
        assert tree.get_attribute("aria-activedescendant") == cursor.get_attribute("id")
        tree.press("Enter")
        tree.press("0")
        tree.press("ArrowUp")
        expect(cursor).to_have_attribute("aria-label", root)


def test_zooming_brings_detail_that_was_not_there_and_a_double_click_brings_all_back(run: Shown) -> None:
    body = run.timeline(LONG)
    status = body.locator(".mtprof-count")
    expect(status).to_contain_text("400,029 events")
    plot = drawn.canvas(body)
    for _ in range(3):
        before = status.inner_text()
        run.page.drag(plot, 0.50, 0.55)
        expect(status).not_to_have_text(before)
    expect(status).to_contain_text(re.compile(r"µs: ([\d,]+) events, \1 blocks"))
    drawn.wait_for(body, "shapes.some(({ label, width }) => label === 'aten::addmm' && width > 20)")

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
        assert len(drawn.bars(body)) <= 2_000
    stage.press("0")
    expect(status).to_contain_text("400,029 events")
