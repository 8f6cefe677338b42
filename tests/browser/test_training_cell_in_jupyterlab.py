"""A real training cell under `%%mtprofile`, in a real JupyterLab."""

import re
from collections.abc import Callable

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect

SETUP = """\
import torch
import mtprof_nb
%load_ext mtprof_nb

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 128)
        self.second = torch.nn.Linear(128, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
batches = [torch.randn(32, 64) for _ in range(4)]
"""
TRAIN = """%%mtprofile --all
for batch in mtprof_nb.steps(batches):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
"""


def test_every_tab_tells_of_a_real_training_cell(lab: Laboratory, new_page: Callable[[str], Page]) -> None:
    pytest.importorskip("torch")
    page = new_page(lab.write("training.ipynb", [SETUP, TRAIN]))
    page.run(0)
    page.run(1)
    panel = page.panel()
    expect(panel.locator(".mtprof-title")).to_have_text("Cell [2]")
    figures = dict(
        zip(
            panel.locator(".mtprof-figure-title").all_inner_texts(),
            panel.locator(".mtprof-figure-text").all_inner_texts(),
            strict=True,
        )
    )
    assert figures["steps"] == "4"
    assert panel.locator(".mtprof-phase-key").all_inner_texts()[0].startswith("forward")
    expect(panel.locator(".mtprof-summary-sentence")).to_contain_text("of this cell")
    panel.get_by_role("tab", name="Operators").click()
    panel.locator(".mtprof-row", has_text="aten::addmm").first.click()
    expect(panel.locator(".mtprof-chip")).to_have_text("aten::addmm ×")

    panel.get_by_role("tab", name="Timeline").click()
    drawn.wait_for(panel.locator(".mtprof-timeline"), "shapes.some(({ isLit }) => isLit === false)")
    panel.get_by_role("tab", name="Stacks").click()
    # With Python's time, which samples estimate, the slice of a short cell may be too narrow for its name.
    panel.get_by_label("Size by").select_option("self")
    expect(panel.locator(".mtprof-slice", has_text=re.compile(r"forward.*Cell \[1\]:12")).first).to_be_visible()
    panel.get_by_role("tab", name="Memory").click()
    drawn.wait_for(panel.locator(".mtprof-memory"), "shapes.some(({ label }) => /^peak .*, Cell /.test(label))")
    assert page.problems == []
    page.tab.close()
