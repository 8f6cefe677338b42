"""Threads that began before a recording: which of them ran during it, and which of their events nobody else has."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from traces import event, make_trace

from mtprof_nb.capture.dispatch.unfollowed_threads import not_followed
from mtprof_nb.capture.kineto import busy_threads as other_threads
from mtprof_nb.capture.kineto.busy_threads import ThreadsBefore
from mtprof_nb.model.trace import Trace


@pytest.fixture
def run_ns(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """How long threads 7 and 8 have run, the test's to change."""
    found = {7: 1_000_000, 8: 1_000_000, 9: 1_000_000}
    monkeypatch.setattr(other_threads, "_run_ns", lambda: dict(found))
    monkeypatch.setattr(other_threads, "_threads_of_the_user", lambda: [(7, "loader"), (8, "monitor")])
    return found


def test_of_many_threads_the_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_threads, "_threads_of_the_user", lambda: [(one, f"w{one}") for one in range(5)])
    monkeypatch.setattr(other_threads, "_run_ns", lambda: dict.fromkeys(range(5), 0))
    before = ThreadsBefore()
    before.note()
    monkeypatch.setattr(other_threads, "_run_ns", dict)
    assert before.that_ran().startswith("threads 'w0', 'w1', 'w2' and 2 more began before")


def test_a_thread_that_did_not_run_is_not_named(run_ns: dict[int, int]) -> None:
    before = ThreadsBefore()
    before.note()
    run_ns[9] += 1_000_000
    assert before.that_ran() == ""
    assert before.native_ids == {7, 8}


def test_threads_that_ran_or_ended_are_named(run_ns: dict[int, int]) -> None:
    before = ThreadsBefore()
    before.note()
    run_ns[7] += 1_000_000
    rest = "began before the recording and ran during it: any ops that ran there are missing"
    assert before.that_ran() == f"thread 'loader' {rest}"
    del run_ns[8]
    assert before.that_ran() == f"threads 'loader', 'monitor' {rest}"


def test_an_idle_worker_of_a_pool_is_followed_and_one_at_work_is_not() -> None:
    working, done = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        done.wait()

    with ThreadPoolExecutor(1, "idle") as idle, ThreadPoolExecutor(1, "busy") as busy:
        idle.submit(int).result()
        busy.submit(work)
        working.wait()
        names = {name for _, name in other_threads._threads_of_the_user()}
        done.set()
    assert "busy_0" in names
    assert "idle_0" not in names


def names(trace: Trace) -> list[str]:
    return [trace.names[name] for name in trace.name]


def test_what_a_thread_ran_until_it_was_followed_is_kept() -> None:
    recorded = make_trace(
        [event("a", 0, 10, thread=1), event("b", 20, 30, thread=1), event("c", 18, 29, thread=2), event("d", 5, 6)]
    )
    followed = make_trace([event("b", 22, 28, thread=1)])
    kept = not_followed(recorded, followed)
    assert names(kept) == ["a", "d", "c"]
    assert len(kept.tracks) == len(set(kept.track.tolist()))
    assert len(not_followed(recorded.take([]), followed)) == 0
