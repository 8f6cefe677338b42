"""The overview tab: the sentence, the dearest lines and ops, the waits, the findings."""

from traces import event, make_trace

from mtprof_nb.model.trace import OutsideOps, SourceLine
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tables.lines_tab import LinesTab
from mtprof_nb.views.tables.summary_tab import SummaryTab, summary_html, summary_text

MS = 1_000_000


def test_the_overview_tells_the_largest_part_and_the_dearest_lines_and_ops() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 60 * MS, line=("f.py", 2), phase="forward"),
            event("aten::add", 60 * MS, 80 * MS, line=("f.py", 3), phase="forward"),
        ],
        ended_ns=100 * MS,
        sources={"f.py": "import torch\ny = x @ x\nz = y + y\ntime.sleep(0.02)\n"},
        outside={SourceLine("f.py", 4): OutsideOps(20 * MS, 20 * MS)},
    )

    first = SummaryTab(Scene(trace)).first()

    assert first["sentence"] == "80 % of this recording is spent in ops; f.py:2 causes 60 % of the whole."
    assert [(line["location"], line["share"]) for line in first["lines"]] == [
        ("f.py:2", "60.0 %"),
        ("f.py:3", "20.0 %"),
        ("f.py:4", "20.0 %"),
    ]
    assert [(op["label"], op["share"]) for op in first["ops"]] == [("aten::mm", "60.0 %"), ("aten::add", "20.0 %")]
    assert first["waits"] == []


def test_shares_of_threads_that_run_at_once_are_those_of_the_table_of_lines() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 90 * MS, line=("f.py", 2)),
            event("aten::mm", 0, 90 * MS, line=("f.py", 2), thread=2),
            event("aten::add", 90 * MS, 100 * MS, line=("f.py", 3)),
        ],
        ended_ns=100 * MS,
        sources={"f.py": "import torch\ny = x @ x\nz = y + y\n"},
        outside={SourceLine("f.py", 2): OutsideOps(10 * MS, 10 * MS)},
    )

    first, table = SummaryTab(Scene(trace)).first(), LinesTab(Scene(trace)).first()

    assert [line["share"] for line in first["lines"]] == ["95.0 %", "5.0 %"]
    assert table["whole_ns"] == 200 * MS
    assert first["sentence"] == ("95 % of the recorded time is spent in ops; f.py:2 causes 95 % of the whole.")


def test_shares_are_those_of_the_program_without_the_profiler() -> None:
    trace = make_trace([event("aten::mm", 90, 96, line=("f.py", 1))], own_ns=90, began_ns=0, ended_ns=100)

    first = SummaryTab(Scene(trace)).first()

    assert first["sentence"] == "60 % of this recording is spent in ops; f.py:1 causes 60 % of the whole."
    assert [op["share"] for op in first["ops"]] == ["60.0 %"]


def test_waits_are_shares_of_the_recorded_time_even_where_ops_are_short() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, MS),
            event("cudaDeviceSynchronize", MS, 50 * MS, kind="runtime"),
            event("gemm", MS, 50 * MS, kind="kernel", device="CUDA", thread=7),
            event("ProfilerStep#0", 0, 100 * MS, kind="scope"),
        ],
    )

    assert SummaryTab(Scene(trace)).first()["waits"] == [
        {"title": "synchronisation with the device", "ns": 49 * MS, "share": "49.0 %"}
    ]


def test_text_and_static_page_tell_what_the_program_waited_for() -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    rows = [event(name, 0, 2_000_000, kind="scope"), event("aten::mm", 2_000_000, 90_000_000)]

    assert "Waited for: DataLoader's next 2.00 ms." in summary_text(make_trace(rows))
    assert "<div>Waited for: DataLoader&#x27;s next 2.00 ms.</div>" in summary_html(make_trace(rows))
    assert "Waited" not in summary_html(make_trace(rows[1:]))
