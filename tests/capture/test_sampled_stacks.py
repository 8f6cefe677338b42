"""Samples become part of a trace: which threads are kept, on hand-made samples."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from mtprof_nb.capture.samples.python_stacks import is_user_thread
from mtprof_nb.capture.samples.sampled_stacks import SampledStacks, sampled_from, samples_within, with_samples
from mtprof_nb.model.trace import Frame, StackInterner, Trace, empty_trace
from mtprof_nb.tables.function_table import Functions

MAIN = threading.main_thread().native_id
MINE, LIBRARY = Frame("train.py", 1, "train"), Frame("/usr/lib/python3.11/multiprocessing/queues.py", 2, "_feed")


def with_threads(*rows: tuple[int, int, Frame, bool]) -> Trace:
    """A trace with samples: moment, native id, frame, and whether the thread was asleep."""
    interner = StackInterner()
    nodes = [interner.stack([frame]) for _, _, frame, _ in rows]
    moments, threads, _, asleep = zip(*rows, strict=True)
    sampled = SampledStacks(
        asked_ns=np.array(moments),
        taken_ns=np.array(moments),
        thread=np.array(threads),
        stack=np.array(nodes, np.int32),
        is_waiting=np.array(asleep),
        awake_ns=np.full(len(rows), -1),
        computed_ns=np.full(len(rows), -1),
        is_of_user=np.ones(len(rows), np.bool_),
        certainty=np.zeros(len(rows), np.int8),
        tree=interner.tree(),
    )
    return with_samples(empty_trace(), sampled, lambda moments: np.asarray(moments, np.int64))


def threads_of(trace: Trace) -> set[int]:
    return {track.native_id for track in trace.tracks}


def test_a_thread_of_a_library_that_waits_is_left_out_and_one_that_computes_is_kept() -> None:
    waits = [(at, MAIN + 1, LIBRARY, at != 5) for at in range(2, 12)]
    computes = [(at, MAIN + 2, LIBRARY, at % 2 == 0) for at in range(2, 12)]
    main = [(at, MAIN, LIBRARY, True) for at in range(14)]

    trace = with_threads(*sorted(main + waits + computes))

    assert threads_of(trace) == {MAIN, MAIN + 2}


def test_a_thread_of_the_user_that_waits_is_kept_unless_it_was_there_all_the_time() -> None:
    started = [(at, MAIN + 1, MINE, True) for at in range(2, 12)]
    asleep = [(at, MAIN + 2, MINE, True) for at in range(14)]
    main = [(at, MAIN, MINE, False) for at in range(14)]

    trace = with_threads(*sorted(main + started + asleep))

    assert threads_of(trace) == {MAIN, MAIN + 1}


def test_time_before_late_samples_belongs_to_no_function_and_a_note_says_so() -> None:
    ms = 1_000_000
    trace = with_threads(*((at * ms, MAIN, MINE, False) for at in range(3_002, 3_012, 2)))
    late = sampled_from(replace(trace, began_ns=0, ended_ns=3_012 * ms), 3_000 * ms)

    assert late.notes == (
        "PyTorch was imported 3.0 s after the recording began: Python functions of the time before were not recorded",
    )
    assert late.samples is not None
    assert (late.samples.stack < 0).sum() == 1_002
    assert late.samples.time_ns[[0, 1_001]].tolist() == [0, 3_000 * ms]
    mine, unknown = Functions(late)
    assert (mine.function, mine.own_ns) == ("train", 11 * ms)
    assert (unknown.function, unknown.own_ns) == ("(unknown)", 3_001 * ms)
    assert unknown.error_ns is not None
    assert unknown.error_ns < 9 * ms


def test_samples_behind_the_end_of_a_cell_are_left_out() -> None:
    last, behind = Frame("cell.py", 2, "<module>"), Frame("cell.py", 3, "<module>")
    trace = with_threads((0, MAIN, last, False), (1, MAIN, behind, False), (2, MAIN, LIBRARY, False))

    assert samples_within(trace, {"cell.py": "%%mtprofile -r\nx = 1\n"})["samples"].time_ns.tolist() == [0, 2]
    assert samples_within(trace, {})["samples"].time_ns.tolist() == [0, 1, 2]
    assert samples_within(empty_trace(), {"cell.py": ""}) == {}


def test_a_thread_of_the_sockets_of_a_notebook_is_not_the_users() -> None:
    garbage = pytest.importorskip("zmq.utils.garbage")

    assert is_user_thread(garbage.__file__, "run", None) is False
    assert is_user_thread(__file__, "with_threads", None) is True
