"""Candle's fast paths, which a recording switches off."""

from collections.abc import Callable

import pytest
from traces import event, make_trace

from mtprof_nb.capture.eager.eager_hook import EnterExitHook
from mtprof_nb.capture.eager.runtimes import CandleHook


@pytest.mark.parametrize(
    ("device", "set_flag", "is_told"), [("NPU", bool, True), ("CPU", bool, False), ("NPU", None, False)]
)
def test_a_recording_says_that_the_program_ran_without_fast_paths_where_it_has_some(
    device: str, set_flag: Callable[[bool], object] | None, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = make_trace([event("add", 0, 10, device=device)])
    monkeypatch.setattr(EnterExitHook, "stop", lambda _: trace)
    hook = object.__new__(CandleHook)
    hook._set_flag = set_flag

    notes = hook.stop().notes

    assert [note.startswith("Candle's fast paths for ops on an NPU were off") for note in notes] == [True] * is_told
