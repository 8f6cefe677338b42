"""The page of a memory timeline: the ordinary page, opened at the bytes of each kind on a device."""

from pathlib import Path

import pytest
from memory_traces import ALL, NOON, memory_trace, taken
from page_elements import Elements
from traces import event, make_trace

from mtprof_nb.analysis.memory.memory_categories import Category
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.memory.memory_tab import KINDS, MemoryTab


@pytest.fixture
def trace() -> Trace:
    return memory_trace()


def _page(trace: Trace, folder: Path, device: str | None = None) -> Elements:
    Recording(trace).export_memory_timeline(folder / "memory.html", device)
    return Elements((folder / "memory.html").read_text("utf-8"))


def _kinds(trace: Trace) -> dict[str, list[int]]:
    (curve,) = MemoryTab(Scene(trace)).first()["curves"]
    assert (
        not curve["kinds"]
        or [sum(held) for held in zip(*(kind["nbytes"] for kind in curve["kinds"]), strict=True)] == curve["nbytes"]
    )
    return {kind["title"]: kind["nbytes"] for kind in curve["kinds"]}


def test_the_page_opens_with_the_bytes_of_each_kind(trace: Trace, tmp_path: Path) -> None:
    parts = _page(trace, tmp_path).parts()
    (curve,) = parts["first-memory"]["curves"]

    assert parts["state"]["opened"] == "memory"
    assert {kind["title"]: kind["nbytes"] for kind in curve["kinds"]} == _kinds(trace)
    assert _kinds(trace) == {
        "temporary": [8, 8, 0, 0],
        "activation": [0, 64, 64, 64],
        "unknown": [300, 300, 300, 200],
    }


def test_every_category_has_a_title_of_its_own() -> None:
    assert list(KINDS) == list(Category)
    assert len(set(KINDS.values())) == len(Category)


def test_a_curve_whose_blocks_are_all_unknown_has_no_kinds() -> None:
    assert _kinds(make_trace([event("a", 0, 10)], [taken(1, 8, 16)])) == {}


def test_a_new_window_knows_none_of_the_blocks_before_it() -> None:
    rows = [
        event("aten::mm", NOON, NOON + 10_000),
        event("MmBackward0", NOON + 40_000, NOON + 50_000, phase="backward", forward=0),
    ]
    blocks = [
        taken(1, 64, 32, 0, total=64),
        taken(20, 8, 48, 0, total=108),
        taken(21, -64, 32, 0, total=44),
    ]

    assert _kinds(make_trace(rows, blocks)) == {"activation": [64, 8, 8], "unknown": [0, 100, 36]}


def test_a_page_shows_the_named_device_alone(tmp_path: Path) -> None:
    rows = [taken(1, 8, 16, 0), taken(2, 64, 32, 0, device="CUDA")]
    trace = make_trace([event("aten::mm", 0, 1)], rows, recorded=ALL)
    shown = [_page(trace, tmp_path, device).parts()["first-memory"]["device"] for device in ("cpu", "cuda:0", None)]

    assert shown == [0, 1, 1]
    assert MemoryTab(Scene(trace)).first()["device"] == -1


def test_the_page_takes_any_text_as_a_label_and_fetches_nothing(tmp_path: Path) -> None:
    label = "</script><script>alert(1)</script>\ud800\x00" + "x" * 1_000_000
    trace = make_trace([event(label, 0, 1)], [taken(1, 8, 8, 0)], recorded=ALL, label=label)
    page = _page(trace, tmp_path)
    text = (tmp_path / "memory.html").read_text("utf-8")

    assert "<script>alert" not in text
    assert "x" * 10_000 not in text
    sources = [given["src"] for _, given in page.found if "src" in given]
    assert all(source.startswith("data:") for source in sources)
    assert not any("href" in given for _, given in page.found)


def test_a_recording_without_allocations_has_a_page_that_says_so(tmp_path: Path) -> None:
    page = _page(make_trace([event("a", 0, 1)], [], recorded=ALL), tmp_path)

    assert page.parts()["first-memory"] == {"empty": "Memory was recorded, and nothing was allocated or released."}
