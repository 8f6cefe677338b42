"""A cell in a real JupyterLab whose ops launch on a simulated GPU, recorded by hook `native`."""

import re
from collections.abc import Callable
from pathlib import Path

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect
from simulated_device import device

from mtprof_nb.capture.native.recorder_loading import why_not
from mtprof_nb.errors import BuildError

_SETUP = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import torch
import mtprof_nb as mtp
from simulated_device import Work, device
both = {{torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}}
torch.profiler.supported_activities = lambda: both
gpu = device()
gpu.plan("aten::mm", Work("sim_mm", 400_000))
ones = torch.ones(3, 3)
"""
_CELL = "%%mtprofile\nwith gpu.on():\n    for _ in range(5):\n        ones.mm(ones)"


def test_a_cell_has_a_bar_of_the_device_and_a_lane_of_its_stream(
    lab: Laboratory, new_page: Callable[[str], Page]
) -> None:
    pytest.importorskip("torch")
    if reason := why_not():
        pytest.skip(f"no native recorder: {reason}")
    try:
        device()
    except BuildError as error:
        pytest.skip(str(error))
    cells = [_SETUP, _CELL]
    page = new_page(lab.write("simulated_device.ipynb", cells))
    for number in range(len(cells)):
        page.run(number)
    panel = page.panel()
    bar = panel.get_by_role("img", name=re.compile(r"^cuda:0: computing"))
    expect(bar).to_be_visible()
    panel.get_by_role("tab", name="Timeline").click()
    body = panel.get_by_role("tabpanel")
    drawn.wait_for(body, "shapes.some(({ label }) => label === 'CUDA:0 stream 7')")
    panel.get_by_role("tab", name="Operators").click()
    panel.get_by_role("tabpanel").get_by_label("Group by").select_option("kernel")
    expect(panel.get_by_role("tabpanel").locator(".mtprof-row").first).to_contain_text("sim_mm")
    assert page.problems == []
    page.tab.close()
