"""Recordings of devices in a real JupyterLab: the tutorial's, and real ones of an H100 and an A100 where they are."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drawn
import pytest
from laboratory import Laboratory, Page
from playwright.sync_api import expect
from real_traces import trace_path

TUTORIAL = Path(__file__).parents[2] / "notebooks" / "gpu_training.json.gz"


@dataclass(frozen=True)
class Expected:
    """Texts of the panel of a recording, an op with one kernel, and how many kernels it has."""

    sentence: str
    lanes: tuple[str, ...]
    kernels: str
    longest: str
    op: str
    kernel: str


EXPECTED = {
    "tutorial": Expected(
        sentence="The GPU is idle 54 % of the time, waiting for the host.",
        lanes=("CUDA:0 stream 7", "CUDA:0 stream 20"),
        kernels="showing 27 of 27",
        longest="ncclDevKernel_AllReduce",
        op="aten::gelu",
        kernel="void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>",
    ),
    "h100_bert_small": Expected(
        sentence="The GPU is idle 92 % of the time, waiting for the host.",
        lanes=("CUDA:0 stream 7",),
        kernels="showing 14 of 14",
        longest="cutlass_80_wmma_tensorop_bf16",
        op="aten::native_layer_norm",
        kernel="",
    ),
    "a100_ddp_rank0": Expected(
        sentence="The GPU is idle 76 % of the time, waiting for the host.",
        lanes=("CUDA:0 stream 7", "CUDA:0 stream 40"),
        kernels="showing 218 of 218",
        longest="ncclKernel_AllReduce",
        op="",
        kernel="",
    ),
}


@dataclass
class Shown:
    page: Page
    expected: Expected

    @property
    def panel(self) -> Any:
        return self.page.panel()

    def open(self, title: str) -> Any:
        self.panel.get_by_role("tab", name=title).click()
        return self.panel.get_by_role("tabpanel")


@pytest.fixture(scope="module", params=EXPECTED)
def shown(request: pytest.FixtureRequest, lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Shown]:
    path = TUTORIAL if request.param == "tutorial" else trace_path(request.param)
    cells = [f"import mtprof_nb as mtp\nrecording = mtp.load({str(path)!r})", "recording.show()"]
    page = new_page(lab.write(f"devices_{request.param}.ipynb", cells))
    for number in range(len(cells)):
        page.run(number)
    found = Shown(page, EXPECTED[request.param])
    expect(found.panel).to_be_visible()
    yield found
    assert page.problems == []
    page.tab.close()


def test_the_first_sentence_and_a_bar_tell_how_the_device_spent_its_time(shown: Shown) -> None:
    expect(shown.panel.locator(".mtprof-sentence")).to_have_text(shown.expected.sentence)
    bar = shown.panel.get_by_role("img", name=re.compile(r"^cuda:0: computing"))
    expect(bar).to_contain_text("idle: host late")


def test_streams_have_lanes_beneath_the_threads_with_their_gaps_by_cause(shown: Shown) -> None:
    body = shown.open("Timeline")
    chart = body.locator(".mtprof-scroll")
    drawn.wait_for(body, "shapes.some(({ bar }) => bar !== null)")
    labels = {shape["label"] for shape in drawn.shapes(body)}
    chart.evaluate("chart => (chart.scrollTop = chart.scrollHeight)")
    drawn.wait_for(body, "shapes.some(({ label }) => label === 'idle: host late')")
    labels |= {shape["label"] for shape in drawn.shapes(body)}
    chart.evaluate("chart => (chart.scrollTop = 0)")

    assert [lane for lane in shown.expected.lanes if lane not in labels] == []
    expect(body.get_by_role("note", name="Colours of op families")).to_contain_text("idle: synchronisation")


def test_kernels_have_rows_with_op_stream_and_grid(shown: Shown) -> None:
    body = shown.open("Operators")
    body.get_by_label("Group by").select_option("kernel")
    expect(body.locator(".mtprof-count")).to_have_text(shown.expected.kernels)
    first = body.locator(".mtprof-row").first
    expect(first.locator(".mtprof-in-name")).to_have_attribute("title", re.compile(shown.expected.longest))
    expect(first.locator(".mtprof-in-name")).to_have_attribute("title", re.compile(r"stream \d+, grid \d+×\d+×\d+"))
    expect(body.get_by_role("columnheader", name="Occupancy")).to_be_visible()
    expect(body.get_by_role("columnheader", name="Bandwidth")).to_be_visible()
    body.get_by_label("Group by").select_option("op")
    expect(body.get_by_role("columnheader", name="Self device")).to_be_visible()


def test_stacks_are_sized_by_time_on_the_device(shown: Shown) -> None:
    stacks = shown.open("Stacks")
    stacks.get_by_label("Size by").select_option("device")
    root = stacks.locator(".mtprof-slice").first
    expect(root).to_have_attribute("aria-label", re.compile(r"device time, 100.0 % of all"))


def test_a_click_on_an_op_leads_to_its_kernel_and_a_click_on_the_kernel_to_its_op(shown: Shown) -> None:
    if not shown.expected.op:
        pytest.skip("its ops are too short to be clicked without a zoom")
    body = shown.open("Timeline")
    status = body.locator(".mtprof-count")
    shown.page.tab.mouse.click(*drawn.middle(body, shown.expected.op))
    expect(status).to_contain_text("1 on the device")
    expect(shown.panel.locator(".mtprof-chip")).to_contain_text(shown.expected.op)
    drawn.wait_for(body, "shapes.some(({ isLit, label }) => isLit && label === 'cudaLaunchKernel')")
    shown.page.tab.keyboard.press("Escape")
    expect(status).not_to_contain_text("on the device")
    if shown.expected.kernel:
        shown.page.tab.mouse.move(*drawn.middle(body, shown.expected.kernel))
        expect(body.get_by_role("tooltip")).to_contain_text(f"launched by {shown.expected.op}")
        expect(body.get_by_role("tooltip")).to_contain_text("train.py:8")
        shown.page.tab.mouse.click(*drawn.middle(body, shown.expected.kernel))
        expect(status).to_contain_text("1 on the device")
        shown.page.tab.keyboard.press("Escape")


def test_lines_and_memory_have_the_device(shown: Shown) -> None:
    if shown.expected.op != "aten::gelu":
        pytest.skip("the recording of the tutorial has stacks and memory of two devices")
    lines = shown.open("Lines")
    expect(lines.get_by_role("columnheader", name="Device")).to_be_visible()
    bars = lines.locator(".mtprof-line-hot .mtprof-line-bars")
    expect(bars).to_have_attribute("aria-label", re.compile(r"on the device: forward [\d.]+ µs, backward [\d.]+ ms"))
    memory = shown.open("Memory")
    expect(memory.get_by_role("note", name="Devices")).to_have_text("cpucuda:0")
