"""The bar of a file that takes long to load, in a real JupyterLab."""

import json
from collections.abc import Callable

from laboratory import Laboratory, Page
from playwright.sync_api import expect

#: Loads a file as if each part of it took as long as somebody needs to look at the bar.
LOAD = """
import time
from pathlib import Path
import mtprof_nb as mtp
from mtprof_nb.views import progress_bar

progress_bar.DELAY_S = 0
show = progress_bar._Notebook.__call__

def show_until_seen(self, title, share):
    show(self, title, share)
    deadline = time.monotonic() + 60
    while share is not None and not Path("seen").exists() and time.monotonic() < deadline:
        time.sleep(0.05)

progress_bar._Notebook.__call__ = show_until_seen
print(len(mtp.load("trace.json").trace), "events")
"""
START = "() => { window.jupyterapp.commands.execute('notebook:run-cell'); }"


def test_the_bar_is_seen_while_a_file_is_loaded_and_gone_afterwards(
    lab: Laboratory, new_page: Callable[[str], Page]
) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 1, "args": {}}
    events = [{**op, "ts": number} for number in range(20_000)]
    (lab.folder / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    page = new_page(lab.write("loading.ipynb", [LOAD]))

    page.tab.evaluate(START)

    bar = page.tab.locator(".jp-OutputArea progress")
    expect(bar).to_be_visible()
    assert 0 < float(bar.get_attribute("value") or 0) < 1
    assert "loading trace.json" in page.tab.locator(".jp-OutputArea").inner_text()
    (lab.folder / "seen").touch()
    expect(page.tab.get_by_text("20000 events")).to_be_visible()
    expect(bar).to_have_count(0)
    assert page.problems == []
    page.tab.close()
