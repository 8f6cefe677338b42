"""The tutorials as they are committed: run, small, and readable on a page without scripts."""

import json
import re
from html import unescape
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.static.markdown_page import markdown

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SANITIZED = FOLDER / "sanitize.cfg"
MS = 1_000_000
LARGEST_BYTES = 500_000
READABLE = {"text/plain", "text/html", "text/markdown", "image/png", "image/svg+xml"}
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
#: Markers of nbval that take a cell out of the comparison.
EXEMPT = re.compile(r"NBVAL_(?:IGNORE_OUTPUT|SKIP)")


def _cells(path: Path, kind: str) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == kind]


def _outputs(path: Path) -> list[dict[str, Any]]:
    return [output for cell in _cells(path, "code") for output in cell["outputs"]]


def test_nbval_reads_every_section_of_what_is_not_compared() -> None:
    plugin = pytest.importorskip("nbval.plugin")
    text = SANITIZED.read_text(encoding="utf-8")

    # It skips a section that it cannot read in silence, such as one with nothing after `replace:`.
    assert len(plugin.get_sanitize_patterns(text)) == len(re.findall(r"(?m)^\[", text)) > 5


def _compared(text: str) -> str:
    """A text as nbval compares it."""
    plugin = pytest.importorskip("nbval.plugin")
    for regex, replace in plugin.get_sanitize_patterns(SANITIZED.read_text(encoding="utf-8")):
        text = re.sub(regex, replace, text)
    return text


def test_a_note_that_only_a_busy_machine_gives_is_not_compared() -> None:
    op = event("aten::mm", 0, MS)
    busy, quiet = (Scene(make_trace([op], began_ns=0, ended_ns=end)) for end in (100 * MS, 2 * MS))

    for made in (static.text, static.html, markdown):
        assert "passed outside ops" in made(busy)
        assert "passed outside ops" not in made(quiet)
        assert _compared(made(busy)) == _compared(made(quiet))


def test_which_steps_are_slow_is_not_compared() -> None:
    def steps(*lengths: int) -> Scene:
        ends = list(accumulate(lengths))
        spans = zip(ends, lengths, strict=True)
        rows = [
            event("aten::mm", end - length, end, step=at, line=("a.py", 3)) for at, (end, length) in enumerate(spans)
        ]
        return Scene(make_trace(rows))

    busy, quiet = steps(MS, MS, 9 * MS, MS), steps(MS, MS, MS, MS)

    for made in (static.text, static.html):
        assert "takes 9.00 ms instead of 1.00 ms" in made(busy)
        assert "instead of" not in made(quiet)
        assert _compared(made(busy)) == _compared(made(quiet))
        assert "4_steps" in _compared(made(busy))


def test_what_recording_took_is_not_compared() -> None:
    rows = [event("aten::add", start, start + 5_000) for start in range(0, 25 * MS, 25_000)]
    slow, cheap = (Scene(make_trace(rows, overhead_ns=cost)) for cost in (24 * MS, 1 * MS))

    for made in (static.text, static.html):
        assert "the profiler's own" in unescape(made(slow))
        assert "the profiler's own" not in unescape(made(cheap))
        assert _compared(made(slow)) == _compared(made(cheap))


def test_every_tutorial_has_a_number_of_its_own_and_a_row_in_the_documentation() -> None:
    page = (FOLDER.parent / "docs" / "tutorials.md").read_text(encoding="utf-8")
    numbers = [path.stem[:2] for path in NOTEBOOKS]

    assert numbers[:8] == ["01", "02", "03", "04", "05", "06", "07", "08"]
    assert len(set(numbers)) == len(numbers)
    assert [path.name for path in NOTEBOOKS if f"/notebooks/{path.name})" not in page] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestTutorial:
    def test_it_was_run_from_top_to_bottom(self, path: Path) -> None:
        cells = _cells(path, "code")

        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))

    def test_it_is_small_and_keeps_no_state_of_widgets(self, path: Path) -> None:
        assert path.stat().st_size <= LARGEST_BYTES
        assert set(json.loads(path.read_text(encoding="utf-8"))["metadata"]) == {"kernelspec", "language_info"}

    def test_its_outputs_can_be_read_without_scripts(self, path: Path) -> None:
        outputs = _outputs(path)
        types = {mime for output in outputs for mime in output.get("data", {})}

        assert types <= READABLE
        # Viewers drop the tags of inline SVG and leave its texts.
        assert not re.search("<script|<svg", json.dumps(outputs))

    def test_no_cell_fails_or_warns(self, path: Path) -> None:
        assert [output for output in _outputs(path) if output["output_type"] == "error"] == []
        assert [output["text"] for output in _outputs(path) if output.get("name") == "stderr"] == []

    def test_a_cell_that_is_not_compared_says_why(self, path: Path) -> None:
        for cell in _cells(path, "code"):
            tags = cell["metadata"].get("tags", [])
            assert not EXEMPT.search(cell["source"]), "use the tag, and say why in a comment"
            assert tags in ([], ["nbval-ignore-output"])
            assert not tags or "# Not compared: " in cell["source"]

    def test_it_points_at_nothing_that_is_missing(self, path: Path) -> None:
        links = [link for cell in _cells(path, "markdown") for link in LINK.findall(cell["source"])]

        assert [link for link in links if not (path.parent / link).exists()] == []
