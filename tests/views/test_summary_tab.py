"""The overview tab: the sentence, the slowest lines and ops, the waits, the findings."""

from traces import event, make_trace

from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.overview import overview_html, overview_text
from mtprof_nb.views.tabs.lines.lines_tab import LinesTab
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab

MS = 1_000_000


def test_the_overview_tells_the_largest_part_and_the_slowest_lines_and_ops() -> None:
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
    assert first["on"] == ""


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

    assert "Waited for: DataLoader's next 2.00 ms." in overview_text(make_trace(rows))
    assert "<div>Waited for: DataLoader&#x27;s next 2.00 ms.</div>" in overview_html(make_trace(rows))
    assert "Waited" not in overview_html(make_trace(rows[1:]))


def _waiting_for_the_gpu(phase: str = "forward") -> Trace:
    """An op whose kernel takes 80 ms, one whose kernel takes 20, and a copy on the host that waits for both."""
    gpu = {"kind": "kernel", "device": "CUDA", "thread": 7}
    return make_trace(
        [
            event("aten::mm", 0, 2 * MS, line=("f.py", 2), phase=phase),
            event("cudaLaunchKernel", MS, MS + 1_000, kind="runtime"),
            event("gemm", 2 * MS, 82 * MS, launch=1, launcher=0, **gpu),
            event("aten::add", 3 * MS, 5 * MS, line=("f.py", 3), phase="forward"),
            event("cudaLaunchKernel", 4 * MS, 4 * MS + 1_000, kind="runtime"),
            event("aten::copy_", 6 * MS, 102 * MS, line=("f.py", 4)),
            event("cudaStreamSynchronize", 7 * MS, 102 * MS, kind="runtime"),
            event("sum", 82 * MS, 102 * MS, launch=4, launcher=3, **gpu),
        ],
        sources={"f.py": "import torch\ny = x @ x\nz = y + y\nz.cpu()\n"},
    )


def test_where_the_host_waits_for_devices_the_overview_is_about_the_time_on_these() -> None:
    first = SummaryTab(Scene(_waiting_for_the_gpu())).first()

    assert first["sentence"] == "f.py:2 causes 80 % of the time on the GPU."
    assert first["on"] == " on the GPU"
    assert [(line["location"], line["time_ns"], line["share"]) for line in first["lines"]] == [
        ("f.py:2", 80 * MS, "80.0 %"),
        ("f.py:3", 20 * MS, "20.0 %"),
    ]
    assert [(op["label"], op["time_ns"], op["share"]) for op in first["ops"]] == [
        ("aten::mm", 80 * MS, "80.0 %"),
        ("aten::add", 20 * MS, "20.0 %"),
    ]


def test_the_largest_phase_on_devices_is_told_where_a_model_is_trained() -> None:
    sentence = SummaryTab(Scene(_waiting_for_the_gpu("backward"))).first()["sentence"]

    assert sentence == "80 % of the time on the GPU is the backward pass; f.py:2 causes 80 % of it."


def test_a_host_that_works_for_longer_than_it_waits_is_not_left_out() -> None:
    rows = [
        event("aten::sort", 0, 900 * MS, line=("f.py", 1)),
        event("cudaLaunchKernel", 901 * MS, 901 * MS + 1_000, kind="runtime"),
        event("gemm", 902 * MS, 912 * MS, kind="kernel", device="CUDA", thread=7, launch=1),
        event("aten::copy_", 903 * MS, 912 * MS, line=("f.py", 2)),
        event("cudaStreamSynchronize", 903 * MS, 912 * MS, kind="runtime"),
    ]
    first = SummaryTab(Scene(make_trace(rows))).first()

    assert (first["on"], [line["location"] for line in first["lines"]]) == ("", ["f.py:1", "f.py:2"])
    assert "on the GPU" not in first["sentence"]


def test_kernels_that_no_op_launched_leave_the_overview_to_the_host() -> None:
    rows = [
        event("aten::mm", 0, MS, line=("f.py", 2)),
        event("cudaGraphLaunch", MS, MS + 1_000, kind="runtime"),
        event("gemm", 2 * MS, 100 * MS, kind="kernel", device="CUDA", thread=7, launch=1),
        event("cudaStreamSynchronize", 2 * MS, 100 * MS, kind="runtime"),
    ]
    first = SummaryTab(Scene(make_trace(rows))).first()

    assert (first["on"], [op["label"] for op in first["ops"]]) == ("", ["aten::mm"])
