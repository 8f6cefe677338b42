"""Garbage collections in a trace: joined, of one process, in files, and no part of any count."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from traces import differences, event, make_trace

import mtprof_nb as mtp
from mtprof_nb.advice.causes.where_time_went import Waiting, waiting
from mtprof_nb.analysis.summary import summary
from mtprof_nb.export import chrome_trace
from mtprof_nb.model.common_terms import moved_clock
from mtprof_nb.model.merge import merge
from mtprof_nb.model.one_process import of_process
from mtprof_nb.model.trace import Collections, Trace
from mtprof_nb.recording import Recording


def _trace(start: int, **scalars: Any) -> Trace:
    """An op with three collections, the last one on a thread without events."""
    collections = Collections(
        start_ns=[start + 10, start + 20, start + 30],
        duration_ns=[4, 5, 6],
        generation=[0, 2, 1],
        track=[0, 0, -1],
    )
    return make_trace([event("aten::mm", start, start + 100)], collections=collections, **scalars)


def _known(trace: Trace) -> Collections:
    assert trace.collections is not None
    return trace.collections


def test_collections_of_several_parts_are_joined_in_order_of_time() -> None:
    whole = _known(merge([_trace(1_000), _trace(0)]))

    assert whole.start_ns.tolist() == [10, 20, 30, 1_010, 1_020, 1_030]
    assert whole.generation.tolist() == [0, 2, 1, 0, 2, 1]


def test_a_process_has_its_own_collections() -> None:
    both = merge([_trace(0, pid=1), _trace(1_000, pid=2)])

    # A collection on a thread without events belongs to no process.
    assert _known(of_process(both, 1)).start_ns.tolist() == [1_010, 1_020]


def test_collections_follow_a_moved_clock() -> None:
    assert _known(moved_clock(_trace(0), 500)).start_ns.tolist() == [510, 520, 530]


def test_a_saved_recording_has_its_collections(tmp_path: Path) -> None:
    trace = _trace(0)
    Recording(trace).save(tmp_path / "run.mtp")

    assert differences(trace, mtp.load(tmp_path / "run.mtp").trace) == []


def test_a_chrome_trace_has_the_collections(tmp_path: Path) -> None:
    trace = _trace(5_000)
    chrome_trace.write(trace, tmp_path / "run.json")
    loaded = mtp.load(tmp_path / "run.json").trace

    assert differences(_known(trace), _known(loaded)) == []
    assert len(loaded) == 1
    assert loaded.notes == ()


def test_collections_count_as_nothing_else() -> None:
    trace = _trace(0)

    assert summary(trace) == summary(replace(trace, collections=None))


def test_the_overview_tells_collections_from_five_percent_of_the_wall_time_on() -> None:
    assert waiting(_trace(0)) == [Waiting("garbage collections", 15)]
    assert waiting(replace(_trace(0), ended_ns=301)) == []
