"""The panel's modules in a plain page: numbers written as Python writes them, and colours of the system's theme."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import training_run

from mtprof_nb.views import panel as panels
from mtprof_nb.views import units

VIEWS = Path(panels.__file__).parent
IMPORT = "source => import(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })))"
#: A model as anywidget gives it, of a panel whose kernel is gone.
RENDER = f"""async ([script, style, state, packed]) => {{
  const {{ default: widget }} = await ({IMPORT})(script);
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const first = Object.fromEntries(Object.entries(packed).map(([name, text]) => [name, bytes(text)]));
  const model = {{ get: (name) => ({{ ...state, first }})[name], on() {{}}, off() {{}}, send() {{}} }};
  document.head.append(Object.assign(document.createElement("style"), {{ textContent: style }}));
  const el = document.body.appendChild(document.createElement("div"));
  await widget.render({{ model, el }});
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
        [(VIEWS / "format.js").read_text(), ns, counts],
    )

    assert written[0] == [units.duration(value) for value in ns]
    assert written[1] == [units.nbytes(value) for value in counts]
    assert written[2][:6] == [units.share(value, 3_000) for value in counts[:6]]


def test_ticks_say_where_a_window_is_however_small_it_is(page: Any) -> None:
    texts = page.evaluate(
        f"""async ([source]) => {{
          const {{ timeTicks }} = await ({IMPORT})(source);
          return [[0, 0.02, 5], [1.2345670, 1.2345682, 4], [0, 3, 6]].map((window) => timeTicks(...window).text);
        }}""",
        [(VIEWS / "format.js").read_text()],
    )

    assert texts == [
        ["0 ms", "5 ms", "10 ms", "15 ms", "20 ms"],
        ["1.2345670 s", "+0.5 µs", "+1.0 µs"],
        ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s", "3.0 s"],
    ]


def test_a_text_is_no_formula_in_a_spreadsheet(page: Any) -> None:
    source = (VIEWS / "format.js").read_text()
    line = page.evaluate(
        f"async ([source, cells]) => (await ({IMPORT})(source)).csvLine(cells)", [source, ["=1+1", 'a"b,c', -3]]
    )

    assert line == '\'=1+1,"a""b,c",-3'


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_jupyterlab_the_panel_has_the_colours_of_the_system(page: Any, scheme: str) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.emulate_media(color_scheme=scheme)
    panel = panels.panel(training_run(500))
    state = {"tabs": panel.tabs, "strip": panel.strip}
    packed = {name: b64encode(first).decode() for name, first in panel.first.items()}
    page.evaluate(RENDER, [panel._esm, panel._css, json.loads(json.dumps(state)), packed])
    page.locator(".mtprof-row").first.wait_for()
    background = page.locator(".mtprof").evaluate("element => getComputedStyle(element).backgroundColor")
    page.get_by_role("tab", name="Timeline").click()
    page.locator(".mtprof-sketch rect").first.wait_for()

    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(27, 30, 34)"}[scheme]
    assert problems == []
