"""The tab of ranks in a browser: the straggler, the tables, the matrix, one rank alone, and the exported page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect
from rank_traces import job

from mtprof_nb.recording import Recording

SHOW = """
from mtprof_nb.views.panel import show_panel
from rank_traces import job
show_panel.show(job())
"""
SENTENCE = "Rank 2 came last in 10 of 10 all-reduces"


@pytest.fixture(scope="module")
def panel(lab: Laboratory, new_page: Callable[[str], Page]) -> Any:
    page = new_page(lab.write("ranks.ipynb", [SHOW]))
    page.run(0)
    yield page.panel(0)
    assert page.problems == []
    page.tab.close()


def test_the_tab_names_the_straggler_and_lists_ranks_and_collectives(panel: Any) -> None:
    expect(panel.get_by_role("tabpanel").filter(has_text=SENTENCE).first).to_be_visible()
    panel.get_by_role("tab", name="Ranks").click()
    expect(panel.locator(".mtprof-ranks-sentence")).to_contain_text(SENTENCE)
    ranks = panel.get_by_role("grid", name="Ranks", exact=True)
    expect(ranks.get_by_role("row").filter(has_text="rank 2")).to_contain_text("70.0 ms")
    expect(panel.get_by_role("grid", name="Collectives")).to_contain_text("rank 2, 10 of 10")
    expect(panel.get_by_role("img", name="rank 2: computing 70.0 ms (70.0 %)")).to_be_visible()
    expect(panel.get_by_role("img", name="Time of each step on each rank")).to_be_visible()


def test_a_cell_of_the_matrix_tells_rank_step_and_time(panel: Any) -> None:
    panel.get_by_role("tab", name="Ranks").click()
    matrix = panel.locator(".mtprof-rank-matrix")
    matrix.scroll_into_view_if_needed()
    matrix.hover()
    expect(panel.get_by_role("tooltip").filter(has_text="10.0 ms, 1.00 × the median")).to_be_visible()


def test_one_rank_is_shown_alone_and_all_again(panel: Any) -> None:
    panel.get_by_role("tab", name="Operators").click()
    operators = panel.get_by_role("grid", name="Operators")
    expect(operators).to_contain_text("Median rank")
    expect(operators).to_contain_text("aten::sort")
    panel.get_by_role("combobox", name="Ranks to show").select_option("rank 0")
    expect(operators).to_contain_text("aten::mm")
    expect(operators).not_to_contain_text("aten::sort")
    expect(operators).not_to_contain_text("Median rank")
    # A click on a rank in its tab shows that rank.
    panel.get_by_role("tab", name="Ranks").click()
    panel.get_by_role("grid", name="Ranks", exact=True).get_by_role("row").filter(has_text="rank 2").click()
    panel.get_by_role("tab", name="Lines").click()
    expect(panel.get_by_role("grid", name="Cost of source lines")).to_contain_text("loss.sort()")
    panel.get_by_role("combobox", name="Ranks to show").select_option("all ranks")
    sort = panel.get_by_role("grid", name="Cost of source lines").get_by_role("row").filter(has_text="loss.sort()")
    expect(sort).to_contain_text("rank 2")


def test_the_exported_page_has_the_tab_without_python(browser: Any, tmp_path: Path) -> None:
    Recording(job()).export_html(tmp_path / "job.html")
    context = browser.new_context(offline=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((tmp_path / "job.html").as_uri())
    page.get_by_role("tab", name="Ranks").click()
    expect(page.locator(".mtprof-ranks-sentence")).to_contain_text(SENTENCE)
    expect(page.get_by_role("grid", name="Collectives")).to_contain_text("all_reduce")
    expect(page.get_by_role("combobox", name="Ranks to show")).to_have_count(0)
    page.get_by_role("tab", name="Operators").click()
    expect(page.get_by_role("grid", name="Operators")).to_contain_text("rank 2")
    assert problems == []
    context.close()
