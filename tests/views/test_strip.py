"""The strip on top: figures and shares with exact numbers, and what is missing."""

from typing import Any

from traces import event, make_trace

from mtprof_nb.analysis.summary import outside_ops_ns, summary
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace, empty_trace
from mtprof_nb.views.strip import strip_of


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
    strip = strip_of(trace, "Cell [3]")

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

    figures = {figure.title: figure.text for figure in strip_of(trace).figures}
    assert figures["on device"] == "2.00 µs"
    assert figures["threads"] == "1"


def test_the_hook_that_waits_for_a_runtime_is_not_named_beside_one() -> None:
    def hook(*hooks: str) -> str:
        return strip_of(make_trace([event("mm", 0, 1)], hooks=hooks)).figures[-1].text

    assert [hook("scopes", "native"), hook("native", "candle"), hook("scopes")] == [
        "native",
        "native, candle",
        "scopes",
    ]


def test_dropped_events_and_a_bad_end_are_said_in_a_line_each() -> None:
    exactly = make_trace([event("mm", 0, 1)], dropped=1_200)
    at_least = make_trace([event("mm", 0, 1)], dropped=1, dropped_exactly=False)

    assert strip_of(exactly, status="The cell was interrupted.").notes == (
        "The cell was interrupted.",
        "1,200 events dropped: the recording was full. Raise max_events to keep them.",
    )
    assert strip_of(at_least).notes[0].startswith("At least 1 event dropped")
    # The warning of the hook has told it.
    warned = "recording stopped at max_events=9: 1,200 events are missing; raise max_events"
    assert strip_of(exactly, status=warned).notes == (warned,)


def test_notes_of_a_file_are_said_in_a_line_each_and_are_joined_without_repeats() -> None:
    first, second = (make_trace([event("mm", 0, 1)], notes=("3 counters are not shown.", note)) for note in "ab")

    assert strip_of(merge([first, second])).notes == ("3 counters are not shown.", "a", "b")
    assert summary(second).notes == ("3 counters are not shown.", "b")


def test_an_empty_profile_says_so() -> None:
    assert strip_of(empty_trace()).notes == ("Nothing was recorded: no op ran, or no tensor runtime was imported.",)


def test_python_frames_make_neither_a_step_nor_a_thread() -> None:
    trace = make_trace([event("mm", 0, 9_000), event("wait", 10_000, 20_000, kind="python", thread=2, step=1)])

    figures = {figure.title: figure.text for figure in strip_of(trace).figures}
    assert (figures.get("steps"), figures["threads"]) == (None, "1")


def phases(trace: Trace) -> list[tuple[str, int, str]]:
    return [tuple(share) for share in strip_of(trace).phases]


def test_the_wall_time_of_a_recording_in_parts_is_without_the_time_between_them() -> None:
    first = make_trace([event("mm", 0, 10_000)], began_ns=0, ended_ns=20_000, windows=((0, 20_000),))
    second = make_trace(
        [event("mm", 990_000, 995_000)], began_ns=970_000, ended_ns=1_000_000, windows=((970_000, 1_000_000),)
    )

    both = merge([first, second])

    figures = {figure.title: figure for figure in strip_of(both).figures}
    assert figures["wall"].text == "50.0 µs"
    assert figures["wall"].meaning == "the recorded parts together, without the time between them"
    assert outside_ops_ns(both) == 35_000


def test_what_ops_leave_of_the_wall_time_is_a_share_of_it() -> None:
    trace = make_trace(
        [event("mm", 10_000, 30_000), event("inner", 15_000, 25_000), event("bwd", 50_000, 70_000, phase="backward")],
        began_ns=0,
        ended_ns=100_000,
    )

    assert phases(trace) == [
        ("forward", 20_000, "20.0 %"),
        ("backward", 20_000, "20.0 %"),
        ("outside ops", 60_000, "60.0 %"),
    ]
    assert (strip_of(trace).whole, sum(share.ns for share in strip_of(trace).phases)) == (
        "Of the program's 100 µs",
        100_000,
    )


def test_threads_that_take_turns_share_the_wall_time_and_those_that_do_not_have_no_part_of_it() -> None:
    window = {"began_ns": 0, "ended_ns": 100_000}
    turns = make_trace([event("a", 0, 30_000), event("b", 30_000, 50_000, thread=2)], **window)
    at_once = make_trace([event("a", 0, 30_000), event("b", 29_999, 50_000, thread=2)], **window)
    covered = make_trace([event("a", 0, 60), event("a", 5, 50), event("b", 20, 30, thread=2)], **window)
    changing = make_trace([event("a", 0, 30_000), event("b", 40_000, 50_000, is_async=True)], **window)

    assert phases(turns) == [("forward", 50_000, "50.0 %"), ("outside ops", 50_000, "50.0 %")]
    assert [phase for phase, *_ in phases(at_once)] == ["forward"]
    assert [phase for phase, *_ in phases(covered)] == ["forward"]
    assert [phase for phase, *_ in phases(changing)] == ["forward"]
    assert strip_of(at_once).whole == "Of the ops' 50.0 µs"


def test_what_ran_between_the_windows_of_a_schedule_is_not_told() -> None:
    rows = [event(f"ProfilerStep#{step}", 100 * step, 100 * step + 50, kind="scope", step=step) for step in (2, 5)]
    trace = make_trace([*rows, event("mm", 210, 240, step=2)], began_ns=200, ended_ns=100_000_000)

    assert (phases(trace), strip_of(trace).notes) == ([("forward", 30, "100.0 %")], ())


def test_a_note_says_when_much_passed_outside_ops_unless_lines_have_it() -> None:
    def notes(in_ops_ms: int, wall_ms: int, **facts: Any) -> tuple[str, ...]:
        ops = [event("mm", 0, in_ops_ms * 1_000_000)]
        return strip_of(make_trace(ops, began_ns=0, ended_ns=wall_ms * 1_000_000, **facts)).notes

    assert notes(29, 223) == (
        "194 ms of 223 ms passed outside ops, in Python code, waiting or input: the times of ops and lines are "
        "without it.",
    )
    outside = {SourceLine("cell", 1): OutsideOps(190_000_000, 190_000_000)}
    assert notes(29, 223, outside=outside) == ()
    assert notes(29, 223, outside=outside, between_ops_ns=9)[0].endswith("waiting or input: the lines tell where.")
    assert len(notes(29, 223, dropped=1)) == 1
    assert "outside" not in notes(29, 223, dropped=1)[0]
    assert notes(29, 223, is_partial=True) == ()
    assert notes(200, 223) == ()
    assert notes(1, 10) == ()


def test_steps_are_those_with_ops_and_are_not_told_where_the_program_told_of_none() -> None:
    batches = [event("mm", 100 * step, 100 * step + 50, step=step) for step in range(3)]
    last_look = event("enumerate(DataLoader)", 300, 310, kind="scope", step=3)

    def steps(rows: list[dict[str, Any]]) -> list[str]:
        return [figure.text for figure in strip_of(make_trace(rows)).figures if figure.title == "steps"]

    assert steps([*batches, last_look]) == ["3"]
    assert steps(batches[:1]) == []


def test_the_profilers_own_time_is_told_apart_from_the_programs() -> None:
    trace = make_trace([event("mm", 10_000, 30_000)], began_ns=0, ended_ns=100_000, own_ns=8_000, overhead_ns=9_000)

    assert phases(trace) == [
        ("forward", 20_000, "21.7 %"),
        ("outside ops", 72_000, "78.3 %"),
    ]
    assert strip_of(trace).shares == (
        "Of the program's 92.0 µs: forward 21.7 %, outside ops 78.3 %; "
        "beside it, the profiler's start and line marks: 8.00 µs"
    )


def test_with_a_hook_in_python_the_note_says_what_recording_took_outside_ops() -> None:
    trace = make_trace([event("mm", 0, 20_000_000)], began_ns=0, ended_ns=100_000_000, between_ops_ns=30_000_000)

    assert strip_of(trace).notes == (
        "80.0 ms of 100 ms passed outside ops, in recording itself (≈ 30.0 ms), Python code, waiting or input: "
        "the times of ops and lines are without it.",
    )


def busy_and_idle(devices: int = 1) -> Trace:
    """Devices that compute for 6 µs, copy for 2 µs and are idle for 92 µs."""
    rows = []
    for index in range(devices):
        on = {"device": "CUDA", "device_index": index, "thread": 7}
        rows += [
            event("gemm", 0, 6_000, kind="kernel", **on),
            event("cudaMemcpyAsync", 50_000, 51_000, kind="runtime"),
            event("Memcpy HtoD", 98_000, 100_000, kind="copy", launch=3 * index + 1, **on),
        ]
    return make_trace(rows)


def test_the_first_sentence_says_who_waits_and_each_device_has_a_bar() -> None:
    strip = strip_of(busy_and_idle())

    assert strip.sentence == "The GPU is idle 92 % of the time, waiting for the host."
    (bar,) = strip.devices
    assert (bar.title, [(part.title, part.ns, part.text) for part in bar.parts]) == (
        "cuda:0",
        [
            ("computing", 6_000, "6.0 %"),
            ("exposed copies", 2_000, "2.0 %"),
            ("idle: host late", 92_000, "92.0 %"),
        ],
    )
    assert bar.line == "cuda:0: computing 6.0 %, exposed copies 2.0 %, idle: host late 92.0 %"


def test_without_devices_there_is_no_sentence_and_no_bar() -> None:
    strip = strip_of(make_trace([event("mm", 0, 1)]))

    assert (strip.sentence, strip.devices) == ("", ())


def test_many_devices_have_a_few_bars_and_a_note() -> None:
    strip = strip_of(busy_and_idle(devices=10))

    assert [bar.title for bar in strip.devices] == [f"cuda:{index}" for index in range(8)]
    assert strip.notes == ("2 more devices: devices() has the figures of all.",)
