"""The panel of a comparison in a real JupyterLab."""

from collections.abc import Callable, Iterator
from typing import Any

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect

SETUP = """\
import mtprof_nb
from mtprof_nb.views.panel import show_panel
from traces import event, make_trace

def training(length, text, extra=()):
    rows = []
    for step in range(5):
        begin = 1_000_000 * step
        rows.append(event("aten::mm", begin, begin + length + 1_000 * step, step=step, line=("train.py", 2)))
        rows += [event(name, begin + 900_000, begin + 910_000, step=step, line=("train.py", 3)) for name in extra]
    rows.append(event("aten::tiny", 10, 20, step=0))
    return make_trace(rows, ended_ns=5_000_000, sources={"train.py": text}, label="run")

before = training(800_000, "for x in data:\\n    y = slow(x)\\n    total += y", ["aten::add_", "aten::item"])
after = training(30_000, "for x in data:\\n    y = quick(x)\\n    print(x.sqrt())", ["aten::sqrt"])
found = mtprof_nb.compare(before, after, names=("before", "after"))
"""
AGAINST = "show_panel.show(after, name='Cell [3]', against=found.compared)"


@pytest.fixture(scope="module")
def page(lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Page]:
    opened = new_page(lab.write("comparison.ipynb", [SETUP, "found", AGAINST]))
    for number in range(3):
        opened.run(number)
    yield opened
    problems = list(opened.problems)
    opened.tab.close()
    assert problems == []


def _open(page: Page, title: str, number: int = 0) -> Any:
    panel = page.panel(number)
    panel.get_by_role("tab", name=title, exact=True).click()
    body = panel.get_by_role("tabpanel")
    # A tab is filled after it is opened, when its content is unpacked.
    body.locator(".mtprof-stage").first.wait_for()
    return body


def _names(body: Any) -> list[str]:
    return body.locator(".mtprof-row .mtprof-label").all_inner_texts()


def test_the_verdict_stands_in_the_strip(page: Page) -> None:
    panel = page.panel()

    expect(panel.locator(".mtprof-title")).to_have_text("after against before")
    expect(panel.locator(".mtprof-sentence")).to_have_text("cannot tell, 1.00 × the time")
    expect(panel.locator(".mtprof-figure-text").nth(1)).to_have_text("16 → 11")


def test_the_table_sorts_folds_and_tells_why(page: Page) -> None:
    body = _open(page, "Differences")
    assert _names(body)[:4] == ["median step", "wall time", "forward", "y = quick(x)"]
    assert "aten::tiny" not in _names(body)

    body.get_by_role("button", name="small ones").click()
    assert "aten::tiny" in _names(body)
    body.get_by_role("button", name="small ones").click()
    body.get_by_role("columnheader", name="Verdict").click()
    expect(body.get_by_role("columnheader", name="Verdict")).to_have_attribute("aria-sort", "descending")
    assert _names(body)[0] == "aten::sqrt", "new"
    body.get_by_label("Rows").select_option("op")
    assert set(_names(body)) == {"aten::mm", "aten::add_", "aten::item", "aten::sqrt"}
    body.locator(".mtprof-row", has_text="aten::mm").click()
    expect(body.locator(".mtprof-why")).to_contain_text("aten::mm: faster. one run each, but most steps differ")
    body.get_by_label("Rows").select_option("")


def test_steps_are_dots_of_two_colours(page: Page) -> None:
    body = _open(page, "Differences")
    drawn.wait_for(body.locator(".mtprof-dots"), "shapes.length === 10")

    assert [shape["label"] for shape in drawn.shapes(body.locator(".mtprof-dots"))] == ["before"] * 5 + ["after"] * 5


def test_changes_that_need_no_statistics_are_listed(page: Page) -> None:
    rows = _open(page, "Differences").locator(".mtprof-changes tr").all_inner_texts()

    assert [row.split("\t")[0] for row in rows[1:3]] == ["ops", "line y = quick(x) (train.py:2)"]


def test_changed_lines_stand_side_by_side(page: Page) -> None:
    body = _open(page, "Changed lines")
    edited = body.locator(".mtprof-is-edited .mtprof-line-text")

    assert edited.all_inner_texts() == ["    y = slow(x)", "    y = quick(x)"]
    expect(body.locator(".mtprof-is-gone")).to_contain_text("total += y")


def test_two_timelines_zoom_together_and_show_other_steps(page: Page) -> None:
    body = _open(page, "Two timelines")
    stages = body.locator(".mtprof-stage")
    for side in range(2):
        drawn.wait_for(stages.nth(side), "shapes.some(({ label }) => label === 'aten::mm')")
    expect(body.locator(".mtprof-count")).to_have_text("1.00 ms of both")

    page.drag(stages.nth(0), 0.3, 0.6)
    expect(body.locator(".mtprof-count")).not_to_have_text("1.00 ms of both")
    # Blocks in the first fifth of the lower step are not in view any more.
    drawn.wait_for(stages.nth(1), "shapes.every(({ label }) => label !== 'aten::mm')")
    body.get_by_label("Step", exact=True).select_option(label="step 4")
    expect(body.locator(".mtprof-count")).to_have_text("1.00 ms of both")
    drawn.wait_for(stages.nth(1), "shapes.some(({ label }) => label === 'aten::mm')")


def test_a_panel_against_another_profile_has_its_own_tabs_and_those_of_the_comparison(page: Page) -> None:
    panel = page.panel(1)

    titles = panel.get_by_role("tab").all_inner_texts()
    assert {"Operators", "Lines", "Timeline"} < set(titles)
    assert titles[-3:] == ["Differences", "Changed lines", "Two timelines"]
    expect(panel.locator(".mtprof-sentence")).to_have_text("after against before: cannot tell, 1.00 × the time.")
    assert "aten::mm" in _names(_open(page, "Differences", 1))


def test_pictures_to_look_at(page: Page, screenshots: Any) -> None:
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.theme(theme)
        for title in ("Differences", "Changed lines", "Two timelines"):
            _open(page, title)
            page.tab.wait_for_timeout(800)
            name = f"comparison {title} {theme.split()[-1]}.png".lower().replace(" ", "-")
            page.panel().screenshot(path=screenshots / name)
    page.theme("JupyterLab Light")


def test_the_colour_of_a_changed_line_is_seen_behind_its_text(page: Page) -> None:
    body = _open(page, "Changed lines")
    text = body.locator(".mtprof-is-edited .mtprof-line-text").first

    assert text.evaluate("element => getComputedStyle(element).backgroundColor") == "rgba(0, 0, 0, 0)"
