"""A recording that was full before the program ended: its figures are of the covered part, and say so everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from traces import differences, event, make_trace

from mtprof_nb.advice.causes.where_time_went import where_time_went
from mtprof_nb.advice.recording_notes import advice_notes
from mtprof_nb.analysis.summary import coverage_notes, summary
from mtprof_nb.capture.hook import SoFar
from mtprof_nb.cell import progress
from mtprof_nb.comparing import compare
from mtprof_nb.export import chrome_trace
from mtprof_nb.loading.recordings import load
from mtprof_nb.model.merge import merge
from mtprof_nb.model.one_process import of_process
from mtprof_nb.model.trace import Samples, StackInterner, Trace, Unrecorded
from mtprof_nb.recording import Recording
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.markdown_page import markdown
from mtprof_nb.views.static.static_page import html, text
from mtprof_nb.views.strip import strip_of

S = 1_000_000_000
WHY = "max_events=2 was reached; raise max_events, or use a schedule"
COVERS = f"This recording covers the first 5.00 s of 10.0 s: {WHY}."


def full(rank: int = -1, ended_s: int = 10) -> Trace:
    """Ops run for 4.9 of the 5 s until the recording was full, and the program for 10 s; in steps of 2 s."""
    rows = [event("aten::mm", 0, 2 * S - S // 10, step=0), event("aten::mm", 2 * S, 5 * S, step=1, line=("f.py", 3))]
    return make_trace(
        rows,
        rank=rank,
        pid=1 + rank,
        ended_ns=5 * S,
        windows=((0, 5 * S),),
        unrecorded=(Unrecorded(5 * S, ended_s * S, WHY),),
        step_starts=((0, 0), (2 * S, 1)),
        dropped=7,
        samples=Samples([0, 1], [0, 1], [0, 0], [-1, -1], [False, False]),
        stacks=StackInterner().tree(),
    )


def test_the_figures_are_of_the_covered_part() -> None:
    figures = summary(full())

    assert (figures.wall_ns, figures.in_ops_ns, figures.outside_ns) == (5 * S, 49 * S // 10, S // 10)
    assert figures.notes == (COVERS,)


def test_the_sentence_the_strip_and_the_notes_say_of_which_part_they_are() -> None:
    trace = full()
    strip = strip_of(trace)

    assert where_time_went(trace) == (
        "This recording covers the first 5.00 s of 10.0 s. "
        "98 % of the recorded part is spent in ops; f.py:3 causes 60 % of that part."
    )
    assert (strip.figures[0].title, strip.figures[0].text) == ("wall", "5.00 s of 10.0 s")
    assert strip.notes == (COVERS,)
    assert advice_notes(trace) == (COVERS,)
    # The warning at the end has told it.
    warned = f"recording stopped after 5 of 10 s, and 7 events are missing: {WHY}"
    assert strip_of(trace, status=warned).notes == (warned,)


def test_the_lines_under_a_cell_that_runs_on_say_how_much_was_recorded_and_how_fast_steps_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    published: list[str] = []
    shell = SimpleNamespace(display_pub=SimpleNamespace(publish=lambda bundle, *_, **__: published.append(bundle)))
    monkeypatch.setattr(progress.time, "monotonic", lambda: 100.0)
    line = progress.RecordingLine(shell, "Cell [2]", lambda: 90_286)  # type: ignore[arg-type]
    monkeypatch.setattr(progress.time, "monotonic", lambda: 123.0)
    monkeypatch.setattr(progress.time, "perf_counter_ns", lambda: 50 * S)
    line._read(SoFar(lines=[], ops=[("aten::mm", 1_000)], resident_bytes=0, full_ns=50 * S - 22_409_000_000))
    line._show()

    assert published[0]["text/plain"].splitlines()[0] == (
        "Cell [2]: stopped recording after 591 ms, as it was full, 23 s, 90,286 steps (3,930 a second)"
    )


def test_texts_of_lines_functions_and_steps_say_it_and_the_step_that_was_cut_is_left_out() -> None:
    recording = Recording(full())

    for shown in (recording.lines(), recording.functions(), recording.steps(), recording.advice()):
        assert COVERS in str(shown)
    averages, events = recording.key_averages(), recording.events()
    for in_torchs_layout in (averages, averages[:1], averages.copy(), events, events[:1]):
        assert str(in_torchs_layout).endswith(f"\nNote: {COVERS}\n")
    assert [step.number for step in recording.steps()] == [0]
    assert str(recording.steps()).startswith("1 whole step; median 2.00 s")


def test_figures_say_it_and_those_of_a_whole_recording_have_no_title() -> None:
    pytest.importorskip("plotly")
    trace = full()
    held = make_trace([event("aten::mm", 0, S)], allocations=[{"nbytes": 8}], ended_ns=S, windows=((0, S),))

    for drawn in (Recording(trace).timeline(), Recording(trace).icicle("count"), Recording(trace).sunburst("count")):
        assert drawn.layout.title.text == COVERS
    cut = Recording(replace(held, unrecorded=(Unrecorded(S, 3 * S, WHY),)))
    assert cut.memory().layout.title.text == f"This recording covers the first 1.00 s of 3.00 s: {WHY}."
    assert Recording(held).timeline().layout.title.text is None
    several = Recording(merge([full(rank=0), full(rank=1)])).timeline()
    assert several.layout.title.text == "2 processes were recorded in part: see summary().notes."


def test_pages_and_files_say_it(tmp_path: Path) -> None:
    trace = full()
    scene, saved, chrome = Scene(trace), tmp_path / "full.mtp", tmp_path / "full.json"
    for page in (text(scene), html(scene)):
        assert COVERS in page
    assert COVERS.partition(":")[0] in markdown(scene)
    Recording(trace).save(saved)
    chrome_trace.write(trace, chrome)

    assert differences(load(saved).trace, trace) == []
    again = load(chrome).trace
    assert (again.began_ns, again.ended_ns, again.dropped) == (0, 5 * S, 7)


def test_of_several_ranks_each_that_was_full_says_so() -> None:
    whole = make_trace([event("aten::mm", 0, S)], rank=0, pid=1, ended_ns=10 * S, windows=((0, 10 * S),))
    ranks = merge([whole, full(rank=1), full(rank=2, ended_s=20)])

    assert summary(ranks).notes == (
        f"Rank 1 covers the first 5.00 s of 10.0 s: {WHY}.",
        f"Rank 2 covers the first 5.00 s of 20.0 s: {WHY}.",
    )
    assert coverage_notes(ranks, "a")[0] == f"Rank 1 of a covers the first 5.00 s of 10.0 s: {WHY}."
    assert of_process(ranks, 1).unrecorded == full().unrecorded
    assert of_process(ranks, 0).unrecorded == ()


def test_of_several_windows_the_times_are_summed() -> None:
    first, second = ((0, 5 * S), (10 * S, 12 * S))
    rows = [event("aten::mm", 0, S), event("aten::mm", 10 * S, 11 * S)]
    spans = (Unrecorded(5 * S, 6 * S, WHY), Unrecorded(12 * S, 14 * S, WHY))
    trace = make_trace(rows, ended_ns=12 * S, windows=(first, second), unrecorded=spans)

    assert summary(trace).notes == (f"This recording covers 7.00 s of 10.0 s: {WHY}.",)


def test_a_comparison_with_a_recording_that_was_full_says_so_and_judges_no_times() -> None:
    whole = make_trace([event("aten::mm", 0, 9 * S, line=("f.py", 3))], ended_ns=10 * S, windows=((0, 10 * S),))

    found = compare(Recording(full()), Recording(whole)).compared

    assert found.sides.why_incomparable == "a recording lacks events"
    assert found.notes[:2] == (
        "a lacks events: rows of one side alone are left out, and counts and times not judged.",
        f"a covers the first 5.00 s of 10.0 s: {WHY}.",
    )
