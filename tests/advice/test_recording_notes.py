"""Notes beside the findings: the profiler's own time between ops."""

from typing import Any

import pytest
from recording import NATIVE
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.advice.recording_notes import advice_notes
from mtprof_nb.analysis.program_time.recording_cost import between_ops
from mtprof_nb.model.trace import Recorded, Trace
from mtprof_nb.tables.advice_list import Advice
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.static_page import html, text
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab

MS = 1_000_000
NOTE = (
    "Most of the time between ops is the profiler's own: at least 10.8 ms of 20.0 ms in the short gaps between ops, "
    "25.0 ms in all. To see the time of the program, "
)


def _ops(gap_ns: int = 20_000, calls: int = 0, **scalars: Any) -> Trace:
    """A thousand ops of 5 µs with gaps between them, in each of which Python calls begin."""
    rows = []
    for start in range(0, 1_000 * (5_000 + gap_ns), 5_000 + gap_ns):
        rows += [event("aten::add", start, start + 5_000)]
        rows += [event("f", start + 5_000 + at, start + 6_000, kind="python") for at in range(calls)]
    return make_trace(rows, **scalars)


def test_the_time_of_recording_is_estimated_gap_by_gap() -> None:
    assert between_ops(_ops(overhead_ns=24 * MS)) == (999 * 20_000, 999 * 10_800)
    assert between_ops(_ops(overhead_ns=25 * MS, own_ns=MS)) == (999 * 20_000, 999 * 10_800)
    assert between_ops(_ops(150_000, overhead_ns=24 * MS)) == (0, 0)
    assert between_ops(_ops()) == (999 * 20_000, 0)


def test_recording_an_op_takes_no_longer_than_the_shortest_gaps() -> None:
    assert between_ops(_ops(overhead_ns=900 * MS)) == (999 * 20_000, 999 * 20_000)


def test_python_calls_count_in_the_gaps_in_which_they_began() -> None:
    cost_ns = 1_000 * 4_000 + 20_000 * 150

    # A call after the last op is in no gap.
    assert between_ops(_ops(calls=20, overhead_ns=cost_ns)) == (999 * 20_000, 999 * (1_800 + 20 * 150))


def test_a_note_says_so_where_recording_is_most_of_the_time_between_ops() -> None:
    (note,) = advice_notes(_ops(overhead_ns=24 * MS))

    assert note == NOTE + "nothing records less: compare times of the program without a profiler."
    assert advice_notes(_ops(overhead_ns=18 * MS)) == ()
    assert advice_notes(_ops()) == ()
    assert advice_notes(_ops(overhead_ns=24 * MS, dropped=1)) == ()


def test_little_of_the_time_is_not_worth_a_note() -> None:
    rows = [event("aten::mm", start, start + 100_000) for start in range(0, 101_000_000, 101_000)]

    assert between_ops(trace := make_trace(rows, overhead_ns=3 * MS)) == (999 * 1_000, 999 * 1_000)
    assert advice_notes(trace) == ()


@pytest.mark.parametrize(
    ("remedy", "scalars"),
    [
        ("record fewer facts: ", {"hooks": ("native",), "recorded": Recorded(record_shapes=True)}),
    ],
)
def test_the_remedy_is_to_record_less(remedy: str, scalars: dict[str, Any]) -> None:
    assert advice_notes(_ops(**{"overhead_ns": 24 * MS} | scalars))[0].startswith(NOTE + remedy)


def test_recorded_python_calls_are_the_first_thing_to_do_without() -> None:
    (note,) = advice_notes(_ops(calls=20, overhead_ns=23_000 * 1_000, recorded=Recorded(with_stack=True)))

    assert "record without with_stack" in note


def test_advice_the_overview_the_static_page_and_the_text_have_the_note() -> None:
    trace = _ops(overhead_ns=24 * MS)
    (note,) = advice_notes(trace)

    assert Advice(trace).notes == (note,)
    assert repr(Advice(trace)).endswith(f"\n\n{note}")
    assert SummaryTab(Scene(trace)).first()["notes"] == [note]
    assert note.replace("'", "&#x27;") in html(Scene(trace)).replace("&quot;", '"')
    assert note in text(Scene(trace))


@pytest.mark.parametrize(("gap_ns", "note"), [(11_000, "at least 5.99 ms of 11.0 ms"), (13_000, "")])
def test_a_hook_in_python_takes_most_of_the_time_between_small_ops(gap_ns: int, note: str) -> None:
    trace = _ops(gap_ns, overhead_ns=10 * MS, between_ops_ns=10 * MS, hooks=("candle",))

    assert [note in one for one in advice_notes(trace)] == ([True] if note else [])


@pytest.mark.parametrize("hook", ["kineto", NATIVE])
def test_hooks_in_c_take_little_of_the_time_between_small_ops(hook: str) -> None:
    torch = pytest.importorskip("torch")
    state, weights = torch.zeros(4), torch.randn(4)

    with mtp.profile(hook=hook) as prof:
        for number in range(2_000):
            state = state + weights
            _ = [part * 2 for part in range(number % 50)]

    assert prof.advice().notes == ()
