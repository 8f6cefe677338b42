"""The panel's modules in a plain page: numbers written as Python writes them, and colours of the system's theme."""

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drawn
import pytest
from playwright.sync_api import expect
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.analysis import units
from mtprof_nb.views.panel import show_panel as panels
from mtprof_nb.views.panel.widget import Panel

WEB = Path(panels.__file__).parents[1] / "web"
IMPORT = "source => import(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })))"
#: A model as anywidget gives it, of a panel whose kernel is there and answers when the test does, or is not there.
RENDER = f"""async ([script, style, state, packed, kernel]) => {{
  const {{ default: widget }} = await ({IMPORT})(script);
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const first = Object.fromEntries(Object.entries(packed).map(([name, text]) => [name, bytes(text)]));
  window.asked = [];
  window.answer = async (question, text) => {{
    window.listen({{ number: question.number }}, [bytes(text)]);
    // The page has read and drawn it by the time that the same bytes are read here.
    await new Response(new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
    await new Promise(requestAnimationFrame);
  }};
  const model = {{
    get: (name) => ({{ ...state, first }})[name],
    on: (name, listener) => name === "msg:custom" && (window.listen = listener),
    send: (question) => {{
      if (window.broken) throw new Error("Cannot send");
      window.asked.push(question);
      if (kernel && question.ask === "hello") window.listen({{ number: question.number }}, []);
    }},
  }};
  document.head.append(Object.assign(document.createElement("style"), {{ textContent: style }}));
  const el = document.body.appendChild(document.createElement("div"));
  window.leave = await widget.render({{ model, el }});
}}"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 900, "height": 700})
    yield opened
    opened.close()


def test_the_page_writes_numbers_as_python_does(page: Any) -> None:
    ns = [0, 1, 999, 1_000, 12_345, 999_499, 999_500, 1_234_567, 59_000_000_000, 1_234_000_000_000, -1_500]
    counts = [0, 1, 999, 1_000, 1_023, 1_536, 3 << 20, 1 << 45, -2_048]
    written = page.evaluate(
        f"""async ([source, ns, counts]) => {{
          const format = await ({IMPORT})(source);
          return [ns.map(format.duration), counts.map(format.nbytes), counts.map((count) => format.share(count, 3000))];
        }}""",
        [(WEB / "format.js").read_text(), ns, counts],
    )

    assert written[0] == [units.duration(value) for value in ns]
    assert written[1] == [units.nbytes(value) for value in counts]
    assert written[2][:6] == [units.share(value, 3_000) for value in counts[:6]]


def unpacked(message: bytes) -> Any:
    return json.loads(zlib.decompress(message))


def render(page: Any, panel: Panel, kernel: bool = True) -> None:
    """Draws a panel, up to the rows of its table."""
    state = {"tabs": panel.tabs, "strip": panel.strip}
    packed = {name: b64encode(first).decode() for name, first in panel.first.items()}
    page.evaluate(RENDER, [panel._esm, panel._css, json.loads(json.dumps(state)), packed, kernel])
    page.locator(".mtprof-row").first.wait_for(state="attached")
    # A panel with one tab shows no button for it.
    if len(panel.tabs) > 1:
        page.get_by_role("tab", name="Operators").click()
    page.locator(".mtprof-row").first.wait_for()


def answer(page: Any, panel: Panel, question: dict[str, Any]) -> None:
    """Has the panel answer one question of the page's."""
    _, (buffer,) = panel._answer(question)
    page.evaluate("([question, text]) => window.answer(question, text)", [question, b64encode(buffer).decode()])


def test_an_answer_that_comes_late_does_not_undo_what_was_asked_after_it(page: Any) -> None:
    rows = [event(f"op {number}", number * 10, number * 10 + number % 9, thread=1) for number in range(3_000)]
    panel = panels.panel(make_trace(rows))
    render(page, panel)
    page.get_by_label("Group by").select_option("thread")
    completing, grouping = page.evaluate("window.asked.filter(({ ask }) => ask === 'rows')")
    assert (completing["grouping"], grouping["grouping"]) == ("op", "thread")

    labels = page.locator(".mtprof-row .mtprof-label")
    answer(page, panel, grouping)
    expect(labels).to_have_text(["thread 1"])
    answer(page, panel, completing)
    expect(labels).to_have_text(["thread 1"])


def test_a_filter_that_is_typed_while_rows_are_regrouped_is_of_the_new_grouping(page: Any) -> None:
    rows = [
        event(f"op {number}", number * 10, number * 10 + number % 9, thread=1 + number % 2) for number in range(3_000)
    ]
    panel = panels.panel(make_trace(rows))
    render(page, panel)
    page.get_by_label("Group by").select_option("thread")
    page.get_by_label("Search in all tabs").fill("thread 2")
    answer(page, panel, page.evaluate("window.asked.findLast(({ ask }) => ask === 'rows')"))

    expect(page.locator(".mtprof-row .mtprof-label")).to_have_text(["thread 2"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_jupyterlab_the_panel_has_the_colours_of_the_system(page: Any, scheme: str) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.emulate_media(color_scheme=scheme)
    render(page, panels.panel(training_run(500)))
    background = page.locator(".mtprof").evaluate("element => getComputedStyle(element).backgroundColor")
    page.get_by_role("tab", name="Timeline").click()
    drawn.wait_for(page.locator(".mtprof-timeline"), "shapes.length > 0")

    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(27, 30, 34)"}[scheme]
    assert problems == []


@pytest.fixture
def problems(page: Any) -> list[str]:
    """Errors of the page."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def controls(page: Any) -> dict[str, bool]:
    """Whether each control that may need a kernel can be used."""
    found = {}
    for title, named in {
        "Operators": [("combobox", "Group by")],
        "Timeline": [("button", "Zoom in")],
        "Stacks": [("button", "Sunburst"), ("combobox", "Size by")],
        "Memory": [("button", "All")],
    }.items():
        page.get_by_role("tab", name=title).click()
        body = page.get_by_role("tabpanel")
        body.locator(".mtprof-tools").wait_for()
        for role, name in named:
            found[name] = body.get_by_role(role, name=name, exact=True).is_enabled()
    return found


def test_without_a_kernel_what_needs_one_is_greyed_out_and_one_line_says_so(page: Any, problems: list[str]) -> None:
    render(page, panels.panel(training_run(500)), kernel=False)
    line = page.get_by_text("The kernel is gone or busy")
    expect(line).to_be_visible()
    assert [name for name, usable in controls(page).items() if usable] == ["Zoom in", "Sunburst", "All"]

    page.evaluate("window.listen({ number: window.asked[0].number }, [])")
    expect(line).to_be_hidden()
    assert all(controls(page).values())
    assert problems == []


def test_a_kernel_that_goes_away_leaves_a_panel_that_says_so(page: Any, problems: list[str]) -> None:
    render(page, panels.panel(training_run(500)))
    page.evaluate("window.broken = true")
    page.get_by_label("Group by").select_option("thread")

    expect(page.get_by_text("The kernel is gone or busy")).to_be_visible()
    expect(page.get_by_label("Group by")).to_be_disabled()
    expect(page.get_by_label("Group by")).to_have_value("op")
    assert problems == []


def test_without_a_kernel_charts_zoom_and_light_what_is_selected(page: Any, problems: list[str]) -> None:
    render(page, panels.panel(training_run(500)), kernel=False)
    expect(page.get_by_text("The kernel is gone or busy")).to_be_visible()
    page.locator(".mtprof-row", has_text="aten::addmm").first.click()
    page.get_by_role("tab", name="Timeline").click()
    timeline = page.locator(".mtprof-timeline")
    drawn.wait_for(timeline, "shapes.some(({ isLit }) => isLit)")
    before = drawn.picture(timeline)
    widest = max(bar["width"] for bar in drawn.bars(timeline) if bar["isLit"])
    page.get_by_label("Zoom in").click()
    drawn.wait_for(timeline, f"shapes.some(({{ isLit, width }}) => isLit && width > {1.2 * widest} && width > 5)")

    assert drawn.picture(timeline) != before
    assert {bar["label"] for bar in drawn.bars(timeline) if bar["isLit"]} == {"aten::addmm"}
    page.get_by_role("tab", name="Stacks").click()
    lit = page.locator(".mtprof-slice", has=page.locator("[fill-opacity='1']"))
    expect(lit.first).to_contain_text("addmm")
    assert problems == []


def test_a_name_that_is_too_long_is_cut_so_that_it_fits(page: Any) -> None:
    cut = page.evaluate(
        f"""async ([source]) => {{
          const {{ fitted, fittedMiddle, textWidth }} = await ({IMPORT})(source);
          const [name, font] = ["native_layer_norm_backward", "11px monospace"];
          const room = textWidth("0123456789", font) + 0.5;
          const cut = [fitted(name, room, font), fitted(name, 9, font), fitted("mm", room, font)];
          return [...cut, fittedMiddle(name, room, font), fittedMiddle("mm", room, font)];
        }}""",
        [(WEB / "label.js").read_text()],
    )

    assert cut == ["native_la…", "", "mm", "nativ…ward", "mm"]


def test_in_a_narrow_place_names_stay_apart_and_the_legend_is_whole(page: Any) -> None:
    page.set_viewport_size({"width": 460, "height": 700})
    render(page, panels.panel(training_run(500)))
    labels = page.locator(".mtprof-row .mtprof-label").all_inner_texts()
    assert any("…" in label for label in labels)
    assert len(set(labels)) == len(labels)

    page.get_by_role("tab", name="Timeline").click()
    legend, panel = page.locator(".mtprof-legend"), page.locator(".mtprof").bounding_box()
    legend.wait_for()
    last = legend.locator(".mtprof-legend-entry").last.bounding_box()
    assert last["y"] + last["height"] <= panel["y"] + panel["height"]
    assert last["x"] + last["width"] <= panel["x"] + panel["width"]


def test_a_zoomed_icicle_stays_where_it_is_when_the_place_becomes_narrower(page: Any) -> None:
    panel = panels.panel(training_run(500))
    render(page, panel)
    page.get_by_role("tab", name="Stacks").click()
    focus = page.locator(".mtprof-slice", has_text=re.compile("^AddmmBackward0$"))
    focus.click()
    expect(page.locator(".mtprof-slice", has_text=re.compile("^linear$"))).to_have_count(0)
    whole = page.locator(".mtprof-stacks").evaluate("element => element.clientWidth")
    expect(focus.locator("rect")).to_have_attribute("width", str(whole - 3))

    page.set_viewport_size({"width": 700, "height": 700})
    expect(focus.locator("rect")).to_have_attribute("width", str(whole - 203))


def test_a_notebook_that_sees_keys_before_the_panel_is_told_to_let_them_be(page: Any) -> None:
    render(page, panels.panel(training_run(500)))
    page.evaluate(
        """() => {
          window.seen = [];
          const suppressed = (event) => event.target.hasAttribute("data-lm-suppress-shortcuts");
          document.addEventListener("keydown", (event) => window.seen.push([event.key, suppressed(event)]), true);
        }"""
    )
    page.get_by_role("tab", name="Stacks").click()
    for key in ("m", "Control+b", "d", "Escape"):
        page.keyboard.press(key)

    assert page.evaluate("window.seen") == [
        *(["m", True], ["Control", True], ["b", False], ["d", True], ["Escape", False])
    ]


def asked_for(page: Any, ask: str) -> Any:
    """The last question of a kind, which the page asks soon."""
    page.wait_for_function("ask => window.asked.some((one) => one.ask === ask)", arg=ask)
    return page.evaluate("ask => window.asked.findLast((one) => one.ask === ask)", ask)


def test_a_window_of_a_long_recording_is_asked_for_with_what_its_view_has_selected(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtprof_nb.views.tabs.timeline.timeline_tab.MOST_SENT", 1)
    panel = panels.panel(training_run(500))
    render(page, panel)
    page.get_by_role("tab", name="Timeline").click()
    answer(page, panel, asked_for(page, "whole"))
    assert asked_for(page, "window")["selected"] is None
    page.get_by_role("tab", name="Operators").click()
    page.locator(".mtprof-row", has_text="aten::addmm").first.click()
    page.get_by_role("tab", name="Timeline").click()
    page.wait_for_function("window.asked.at(-1).selected")

    rows = unpacked(panel.first["operators"])["rows"]
    selected = {"grouping": "op", "row": rows["id"][rows["label"].index("aten::addmm")]}
    assert asked_for(page, "window")["selected"] == selected


def test_a_short_recording_is_asked_for_once_and_needs_no_kernel_after_that(page: Any, problems: list[str]) -> None:
    panel = panels.panel(training_run(3_000))
    render(page, panel)
    page.get_by_role("tab", name="Timeline").click()
    timeline = page.locator(".mtprof-timeline")
    answer(page, panel, asked_for(page, "whole"))
    page.evaluate("window.broken = true")
    status = timeline.locator("[role=status]")
    for _ in range(7):
        page.get_by_label("Zoom in").click()
    expect(status).to_contain_text(re.compile(r"^\S+ .s: (\d+) events, \1 blocks$"))

    assert page.evaluate("window.asked.map(({ ask }) => ask)") == ["hello", "whole"]
    expect(page.get_by_text("The kernel is gone or busy")).to_be_hidden()
    assert problems == []


def test_the_line_that_the_keys_move_to_is_told_to_a_screen_reader(page: Any) -> None:
    cell = "<ipython-input-1-0>"
    ops = [event("aten::mm", at * 100, at * 100 + 90 - at, line=(cell, at + 1)) for at in range(3)]
    render(page, panels.panel(make_trace(ops, sources={cell: "a @ b\nb @ c\nc @ d"})))
    page.get_by_role("tab", name="Lines").click()
    listing = page.get_by_role("grid", name="Cost of source lines")
    cursor = listing.locator(".mtprof-cursor")

    for key, line in (("Home", "1"), ("ArrowDown", "2"), ("End", "3")):
        listing.press(key)
        expect(cursor.locator(".mtprof-line-at")).to_have_text(line)
        assert listing.get_attribute("aria-activedescendant") == cursor.get_attribute("id") != ""


def test_a_panel_that_goes_watches_no_size_any_more(page: Any) -> None:
    page.evaluate(
        """() => {
          window.watching = new Set();
          window.ResizeObserver = class extends ResizeObserver {
            observe(element) { window.watching.add(this); super.observe(element); }
            disconnect() { window.watching.delete(this); super.disconnect(); }
          };
        }"""
    )
    render(page, panels.panel(training_run(500)))
    for title in ("Lines", "Timeline", "Stacks", "Memory"):
        page.get_by_role("tab", name=title).click()
    page.locator(".mtprof-memory .mtprof-row").first.wait_for()

    assert page.evaluate("window.watching.size") == 6
    page.evaluate("window.leave()")
    assert page.evaluate("window.watching.size") == 0
