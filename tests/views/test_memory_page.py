"""The page of a memory timeline: bytes by purpose over time, in a page that fetches nothing."""

from pathlib import Path

import pytest
from memory_traces import ALL, memory_trace, taken
from page_elements import Elements
from traces import event, make_trace

from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording


@pytest.fixture
def trace() -> Trace:
    return memory_trace()


def _page(trace: Trace, folder: Path) -> Elements:
    Recording(trace).export_memory_timeline(folder / "memory.html")
    return Elements((folder / "memory.html").read_text("utf-8"))


def test_the_page_has_the_bytes_of_each_purpose(trace: Trace, tmp_path: Path) -> None:
    first = _page(trace, tmp_path).parts()["first-purposes"]

    assert {purpose["title"]: purpose["nbytes"] for purpose in first["purposes"]} == {
        "temporary": [0, 8, 8, 0],
        "activation": [0, 0, 64, 64],
        "unknown": [300, 300, 300, 200],
    }
    assert (first["time_ns"], first["whole_ns"], first["peak"]) == ([0, 0, 1_000, 2_000], 2_000, 372)


def test_the_page_names_the_peak_as_text_and_fetches_nothing(trace: Trace, tmp_path: Path) -> None:
    page = _page(trace, tmp_path)
    strip = page.parts()["state"]["strip"]

    assert page.texts["title"] == ["Memory of cpu: <b>mine</b>"]
    assert [(figure["title"], figure["text"]) for figure in strip["figures"]] == [
        ("peak", "372 B"),
        ("reached in", "aten::mm"),
    ]
    assert not any("src" in given or "href" in given for _, given in page.found)
    assert (tmp_path / "memory.html").stat().st_size < 250_000


def test_without_scripts_the_page_has_the_bytes_at_the_peak(trace: Trace, tmp_path: Path) -> None:
    _page(trace, tmp_path)
    text = (tmp_path / "memory.html").read_text("utf-8")

    assert "<tr><td>activation</td><td>64 B</td></tr>" in text[text.index("<noscript>") :]


def test_the_page_takes_any_text_as_a_label(tmp_path: Path) -> None:
    label = "</script><script>alert(1)</script>\ud800\x00" + "x" * 1_000_000
    trace = make_trace([event(label, 0, 1)], [taken(1, 8, 8, 0)], recorded=ALL, label=label)
    _page(trace, tmp_path)
    text = (tmp_path / "memory.html").read_text("utf-8")

    assert "<script>alert" not in text
    assert "x" * 1_000 not in text


def test_a_recording_without_allocations_has_a_page_that_says_so(tmp_path: Path) -> None:
    page = _page(make_trace([event("a", 0, 1)], [], recorded=ALL), tmp_path)

    assert page.parts()["first-purposes"] == {"empty": "Nothing was allocated on cpu."}
