"""The overview tab of an exported page, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from traces import event, make_trace

from mtprof_nb.model.trace import OutsideOps, SourceLine
from mtprof_nb.recording import Recording

MS = 1_000_000
FILE = "/home/me/train.py"
HOSTILE = "<img src=x onerror=window.harmed=1>"


def _op(name: str, start: int, end: int, dtypes: tuple[str, ...], line: int, **facts: Any) -> dict[str, Any]:
    shapes = ((100,),) * len(dtypes)
    return event(name, start * MS, end * MS, shapes=shapes, dtypes=dtypes, line=(FILE, line), **facts)


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    """The exported page of a program that mixes float32 and float64."""
    trace = make_trace(
        [
            _op("aten::mul", 0, 30, ("float", "double"), 1),
            _op(HOSTILE, 30, 40, ("float",), 2),
            _op("aten::mm", 40, 100, ("float",), 3, phase="backward"),
        ],
        sources={FILE: f"y = x * scale\nf('{HOSTILE}')\nloss.backward()\n"},
    )
    Recording(trace).export_html(tmp_path / "report.html")
    context = browser.new_context(offline=True, viewport={"width": 700, "height": 800})
    shown = context.new_page()
    shown.goto((tmp_path / "report.html").as_uri())
    yield shown
    context.close()


def test_a_panel_opens_with_the_sentence_the_findings_and_the_slowest_lines_and_ops(page: Any) -> None:
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    body = page.get_by_role("tabpanel")
    expect(body).to_contain_text("60 % of this recording is the backward pass; train.py:3 causes 60 % of the whole.")
    finding = body.locator(".mtprof-finding")
    expect(finding).to_have_count(1)
    expect(finding).to_contain_text("float32 becomes float64 here")
    expect(finding).to_contain_text("y = x * scale")
    expect(finding).to_contain_text("A fix can save at most 30.0 ms (30 % of the time), an upper bound.")
    expect(finding).to_contain_text("How sure: certain.")
    assert body.get_by_role("list", name="Hottest lines").get_by_role("button").all_inner_texts() == [
        *("train.py:3", "train.py:1", "train.py:2")
    ]
    assert body.get_by_role("list", name="Hottest ops").get_by_role("button").all_inner_texts() == [
        *("aten::mm", "aten::mul", HOSTILE)
    ]
    assert page.evaluate("window.harmed") is None


def test_a_click_on_the_line_of_a_finding_opens_lines_with_it_selected(page: Any) -> None:
    page.locator(".mtprof-finding").get_by_role("button", name="train.py:1").click()

    expect(page.get_by_role("tab", name="Lines")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel").get_by_role("row", selected=True)).to_contain_text("y = x * scale")


def test_a_click_on_a_line_without_ops_opens_lines_and_brings_it_into_view(browser: Any, tmp_path: Path) -> None:
    text = "".join(f"pass  # {number}\n" for number in range(1, 100)) + "time.sleep(1)\n" + "pass\n" * 100 + "mm()\n"
    outside = {SourceLine(FILE, 100): OutsideOps(60 * MS, 60 * MS)}
    rows = [event("aten::mm", 0, 40 * MS, line=(FILE, 201))]
    Recording(make_trace(rows, outside=outside, ended_ns=100 * MS, sources={FILE: text})).export_html(
        tmp_path / "report.html"
    )
    page = browser.new_page(viewport={"width": 700, "height": 500})
    page.goto((tmp_path / "report.html").as_uri())

    page.get_by_role("list", name="Hottest lines").get_by_role("button", name="train.py:100").click()

    pointed = page.get_by_role("tabpanel").locator(".mtprof-line-lit")
    expect(pointed).to_contain_text("time.sleep(1)")
    expect(pointed).to_be_in_viewport()
    page.get_by_role("tabpanel").get_by_role("row").filter(has_text="mm()").click()
    expect(pointed).to_have_count(0)
    page.close()


def test_a_click_on_an_op_opens_operators_with_it_selected(page: Any) -> None:
    page.get_by_role("button", name="aten::mul").click()

    expect(page.get_by_role("tab", name="Operators")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel").get_by_role("row", selected=True)).to_contain_text("aten::mul")
