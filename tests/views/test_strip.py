"""The strip on top: figures and shares with exact numbers, and what is missing."""

from traces import event, make_trace

from mtprof_nb.trace import empty_trace
from mtprof_nb.views.summary import summary


def test_the_figures_of_a_trace() -> None:
    trace = make_trace(
        [
            event("fwd", 1_000, 31_000, step=0),
            event("inner", 2_000, 12_000, step=0),
            event("bwd", 40_000, 80_000, phase="backward", step=1),
            event("opt", 0, 30_000, phase="optimizer", thread=2, step=1),
        ],
        allocations=[{"time_ns": 3_000, "nbytes": 2_048}, {"time_ns": 4_000, "nbytes": -1_024}],
        began_ns=0,
        ended_ns=100_000,
        overhead_ns=4_000,
    )
    strip = summary(trace, "Cell [3]")

    assert strip.title == "Cell [3]"
    assert {figure.title: figure.text for figure in strip.figures} == {
        "wall": "100 µs",
        "in ops": "100 µs",
        "ops": "4",
        "steps": "2",
        "threads": "2",
        "peak memory": "2.00 KiB",
        "profiler": "≈ 4.00 µs",
    }
    assert [(share.phase, share.ns, share.text) for share in strip.phases] == [
        ("forward", 30_000, "30.0 %"),
        ("backward", 40_000, "40.0 %"),
        ("optimizer", 30_000, "30.0 %"),
    ]
    assert strip.notes == ()


def test_kernels_have_a_figure_and_are_no_thread() -> None:
    trace = make_trace([event("mm", 0, 9_000), event("k", 5_000, 7_000, kind="kernel", device="CUDA", thread=5)])

    figures = {figure.title: figure.text for figure in summary(trace).figures}
    assert figures["on device"] == "2.00 µs"
    assert figures["threads"] == "1"


def test_dropped_events_and_a_bad_end_are_said_in_a_line_each() -> None:
    exactly = make_trace([event("mm", 0, 1)], dropped=1_200)
    at_least = make_trace([event("mm", 0, 1)], dropped=1, dropped_exactly=False)

    assert summary(exactly, status="The cell was interrupted.").notes == (
        "The cell was interrupted.",
        "1,200 events dropped: the recording was full. Raise max_events to keep them.",
    )
    assert summary(at_least).notes[0].startswith("At least 1 event dropped")


def test_an_empty_profile_says_so() -> None:
    assert summary(empty_trace()).notes == ("Nothing was recorded: no op ran, or no tensor runtime was imported.",)


def test_python_frames_make_neither_a_step_nor_a_thread() -> None:
    trace = make_trace([event("mm", 0, 9_000), event("wait", 10_000, 20_000, kind="python", thread=2, step=1)])

    figures = {figure.title: figure.text for figure in summary(trace).figures}
    assert (figures["steps"], figures["threads"]) == ("1", "1")
