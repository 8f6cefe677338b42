"""A cell whose ops launch on a simulated GPU, in a real JupyterLab: the panel has its device time."""

import re
from collections.abc import Callable

import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect
from simulated_device import device

from mtprof_nb.capture.native.recorder_loading import why_not
from mtprof_nb.errors import BuildError

SETUP = """
%load_ext mtprof_nb
import torch
from simulated_device import Work, device
both = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
torch.profiler.supported_activities = lambda: both
gpu = device()
gpu.plan("aten::mm", Work("sim_mm", 4_000_000))
ones = torch.ones(3, 3)
"""
CELL = """%%mtprofile
with gpu.on():
    for _ in range(5):
        ones.mm(ones)
"""


def test_the_panel_of_a_cell_shows_the_time_on_its_device(lab: Laboratory, new_page: Callable[[str], Page]) -> None:
    pytest.importorskip("torch")
    if reason := why_not():
        pytest.skip(f"no native recorder: {reason}")
    try:
        device()
    except BuildError as error:
        pytest.skip(str(error))
    page = new_page(lab.write("simulated_device.ipynb", [SETUP, CELL]))
    page.run(0)
    page.run(1)
    panel = page.panel()
    expect(panel).to_be_visible()
    bar = panel.get_by_role("img", name=re.compile(r"^cuda:0: computing"))
    expect(bar).to_be_visible()
    panel.get_by_role("tab", name="Operators").click()
    body = panel.get_by_role("tabpanel")
    body.get_by_label("Group by").select_option("kernel")
    expect(body.locator(".mtprof-count")).to_have_text("showing 1 of 1")
    expect(body.locator(".mtprof-row")).to_contain_text(re.compile(r"sim_mm.*aten::mm, stream 7.*20\.0 ms"))
    assert page.problems == []
    page.tab.close()
