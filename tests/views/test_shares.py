"""One notion, one share: every writer divides by the program's time, which is without the profiler's."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_elements import Elements
from rank_traces import job
from traces import event, make_trace

from mtprof_nb.analysis import units
from mtprof_nb.analysis.ranks.rank_figures import rank_figures
from mtprof_nb.model.records import Samples
from mtprof_nb.model.trace import Frame, OutsideOps, SourceLine, StackInterner, Trace, Track
from mtprof_nb.recording import Recording
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.operators.operator_rows import rows
from mtprof_nb.tables.rank_table import PARTS
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.static_page import bundle
from mtprof_nb.views.strip import strip_of
from mtprof_nb.views.tabs.lines.lines_tab import LinesTab
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab

MS = 1_000_000
SOURCE = "import torch\ny = x @ x\nz = y + y\ntime.sleep(0.006)\n"


@pytest.fixture(params=["marks", "no marks"])
def trace(request: pytest.FixtureRequest) -> Trace:
    """The profiler takes 70 of 100 ms; of the other 30, a product takes 20, a sum 4, and `sleep` 6."""
    return make_trace(
        [
            event("aten::mm", 71 * MS, 91 * MS, line=("f.py", 2)),
            event("aten::add", 91 * MS, 95 * MS, line=("f.py", 3)),
        ],
        began_ns=0,
        ended_ns=100 * MS,
        own_ns=70 * MS,
        overhead_ns=71 * MS,
        sources={"f.py": SOURCE},
        outside={SourceLine("f.py", 4): OutsideOps(6 * MS, 6 * MS)} if request.param == "marks" else None,
    )


def shares(text: str, beginning: str) -> list[str]:
    """The percentages of the lines of a text, or of the rows of a table in HTML, that begin so."""
    plain = re.sub(r"<[^>]*>|&nbsp;|[`|■]", " ", re.sub(r"(</?tr|</?div|<p\b)", r"\n\1", text))
    found = [line for line in map(str.strip, plain.splitlines()) if line.startswith(beginning)]
    return [f"{percent:.1f}" for line in found for percent in map(float, re.findall(r"([\d.]+) ?%", line))]


def test_time_in_ops_has_one_share_in_bar_sentence_text_markdown_and_html(trace: Trace) -> None:
    scene = Scene(trace)
    written = bundle(scene)
    strip = strip_of(trace)

    assert [(share.phase, share.text) for share in strip.phases] == [("forward", "80.0 %"), ("outside ops", "20.0 %")]
    assert sum(share.ns for share in strip.phases) == 30 * MS
    assert strip.written()["whole"] == "Of the program's 30.0 ms"
    assert strip.written()["profiler"] == "beside it, the profiler's start and line marks: 70.0 ms"
    assert (
        SummaryTab(scene).first()["sentence"].startswith("80 % of this recording is spent in ops; f.py:2 causes 67 %")
    )
    for text in written.values():
        assert shares(text, "Of the program") == ["80.0", "20.0"]
    for kind in ("text/plain", "text/html"):
        assert "80 % of this recording is spent in ops; f.py:2 causes 67 % of the whole." in written[kind]


def test_a_line_has_one_share_everywhere(trace: Trace) -> None:
    scene = Scene(trace)
    overview, lines = SummaryTab(scene).first()["lines"][0], LinesTab(scene).first()

    assert (overview["location"], overview["share"]) == ("f.py:2", "66.7 %")
    assert lines["whole_ns"] == 30 * MS
    assert [shares(text, "f.py:2")[0] for text in bundle(scene).values()] == ["66.7"] * 3
    assert shares(repr(Lines(trace)), "f.py:2") == ["66.7"]


def test_an_op_has_one_share_everywhere(trace: Trace) -> None:
    scene = Scene(trace)
    grouped = rows(trace, "op")

    assert [op["share"] for op in SummaryTab(scene).first()["ops"]] == ["66.7 %", "13.3 %"]
    (column,) = (column for column in grouped.columns if column.of)
    assert [units.share(*grouped.share(column, row)) for row in grouped.order("self_ns").tolist()] == [
        "66.7 %",
        "13.3 %",
    ]
    assert [shares(text, "aten::mm") for text in bundle(scene).values()] == [["66.7"]] * 3


def test_the_exported_page_carries_the_same_wholes(trace: Trace, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    Recording(trace).export_html(page)
    parts = Elements(page.read_text()).parts()

    assert parts["state"]["strip"]["whole"] == "Of the program's 30.0 ms"
    assert parts["first-operators"]["wholes"]["self_ns"] == 30 * MS
    assert parts["first-lines"]["whole_ns"] == 30 * MS
    assert parts["first-summary"]["lines"][0]["share"] == "66.7 %"


def test_lines_of_threads_that_run_at_once_are_shares_of_the_time_of_all() -> None:
    def sampled(*threads: int) -> Trace:
        """100 ms with one op of 50, and in each millisecond a sample of each thread, on line 3 or 4."""
        made = make_trace([event("aten::mm", 0, 50 * MS, line=("f.py", 2))], began_ns=0, ended_ns=100 * MS)
        interner = StackInterner()
        stacks = [interner.stack([Frame("f.py", line, "run")]) for line in (3, 4)]
        rows = [(at * MS, at * MS, thread, stacks[thread], False) for at in range(100) for thread in threads]
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        tracks = (*made.tracks, Track(2, "thread 2"))
        facts = {"samples": Samples(*columns), "stacks": interner.tree(), "tracks": tracks, "sources": {"f.py": SOURCE}}
        return replace(made, **facts)

    one, two = sampled(0), sampled(0, 1)

    assert strip_of(one).shares == "Of the program's 100 ms: forward 50.0 %, outside ops 50.0 %"
    whole_ns = LinesTab(Scene(two)).first()["whole_ns"]
    assert whole_ns == sum(row.time_ns for row in Lines(two)) > 140 * MS
    assert strip_of(two).whole == f"Of all threads' {units.duration(whole_ns)}"
    shown = SummaryTab(Scene(two)).first()["lines"]
    assert [line["share"] for line in shown] == [units.share(line["time_ns"], whole_ns) for line in shown]


def test_the_parts_of_a_rank_are_shares_of_its_time_without_the_profilers() -> None:
    trace = job(ranks=2, slow=1, own_ns=10 * MS)
    row = rank_figures(trace)[0]

    assert (row.wall_ns, row.profiler_ns) == (100 * MS, 10 * MS)
    parts = [getattr(row, key) for key in PARTS]
    assert sum(parts) == 90 * MS
    expected = [units.share(ns, 90 * MS) for ns in parts]
    brief = Recording(trace).ranks().brief()
    assert brief is not None
    assert [re.findall(r"\((.*)\)", cell)[0] for cell in brief.texts()[0][2:6]] == expected
    assert re.findall(r"\(([^)]*)\)", repr(Recording(trace).ranks()).splitlines()[-2]) == expected
