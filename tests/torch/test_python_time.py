"""Programs whose functions measure their own time: the estimates from samples agree with them."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mtprof_nb as mtp
from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.capture.native.recorder_loading import recorder

torch = pytest.importorskip("torch")

#: A module of the user: its functions note in `spent` how long they took themselves, in seconds.
_MODULE = """
import time
from contextlib import contextmanager

spent = {{}}

@contextmanager
def noting(name):
    began = time.perf_counter()
    yield
    spent[name] = spent.get(name, 0) + time.perf_counter() - began

def busy_{name}(seconds):
    with noting("busy_{name}"):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

def asleep_{name}(seconds):
    with noting("asleep_{name}"):
        time.sleep(seconds)
"""


@pytest.fixture(params=["native", "python"])
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to take samples."""
    if request.param == "python":
        monkeypatch.setenv("MTPROF_RECORDER", "off")
    elif recorder() is None:
        pytest.skip("the native recorder is not built")
    return str(request.param)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Makes modules of the user, each in a file of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def make(name: str) -> ModuleType:
        (tmp_path / f"work_{name}.py").write_text(_MODULE.format(name=name))
        made.append(f"work_{name}")
        return __import__(f"work_{name}")

    yield make
    for name in made:
        sys.modules.pop(name, None)


def check(prof: mtp.profile, *modules: ModuleType) -> None:
    """Each function's time is within 5 % or 5 ms of what it measured itself, and the threads' times are whole.

    On a busy machine the sampler does not run at times: as much as that is not known.
    """
    found = {row.function: row for row in prof.functions()}
    samples = prof.trace.samples
    blind = np.sort(np.diff(np.unique(samples.time_ns)))[-3:].sum() / 1e9 - 3 * 0.003
    for one in modules:
        for name, seconds in one.spent.items():
            row = found[name]
            assert row.total_ns / 1e9 == pytest.approx(seconds, rel=0.05, abs=0.005 + max(blind, 0)), name
            # A thread that could run again, and that the system has not continued yet, is not asleep.
            assert not name.startswith("asleep") or row.waiting_ns > 0.3 * row.own_ns


def wall_share(prof: mtp.profile) -> float:
    """The time of the main thread by stacks over the wall time of the program."""
    summary, time = prof.summary(), stack_time(prof.trace)
    own = time.track == track_of(prof, threading.main_thread())
    return float((time.ops_ns + time.python_ns + time.waiting_ns)[own].sum() / (summary.wall_ns - summary.profiler_ns))


def track_of(prof: mtp.profile, thread: threading.Thread) -> int:
    """The number of a thread's track: threads that other tests left behind may have tracks too."""
    return [track.native_id for track in prof.trace.tracks].index(thread.native_id)


def test_nested_functions_of_several_files(sampler: str, module: Callable[[str], ModuleType]) -> None:
    one, other = module("one"), module("other")

    def outer() -> None:
        one.busy_one(0.1)
        inner()
        one.asleep_one(0.06)

    def inner() -> None:
        other.busy_other(0.08)
        other.asleep_other(0.1)
        torch.ones(8) + 1

    with mtp.profile(with_python=True) as prof:
        outer()

    check(prof, one, other)
    assert wall_share(prof) == pytest.approx(1, rel=0.02)


def test_threads(sampler: str, module: Callable[[str], ModuleType]) -> None:
    one, other = module("one"), module("other")

    with mtp.profile(with_python=True) as prof:
        thread = threading.Thread(target=lambda: (other.asleep_other(0.1), other.busy_other(0.1)))
        thread.start()
        one.asleep_one(0.15)
        thread.join()

    check(prof, one, other)
    own = [track_of(prof, each) for each in (threading.main_thread(), thread)]
    assert set(own) <= set(prof.trace.samples.track.tolist())


def test_tasks_of_asyncio_and_generators(sampler: str, module: Callable[[str], ModuleType]) -> None:
    one, other = module("one"), module("other")

    async def task() -> None:
        one.busy_one(0.05)
        await asyncio.sleep(0.05)

    def batches() -> Iterator[None]:
        for _ in range(2):
            other.busy_other(0.04)
            yield

    with mtp.profile(with_python=True) as prof:
        asyncio.run(task())
        for _ in batches():
            other.asleep_other(0.03)

    check(prof, one, other)
    assert {row.function for row in prof.functions()} >= {"task", "batches"}


def test_a_slow_collate_function(sampler: str, module: Callable[[str], ModuleType]) -> None:
    one = module("one")

    def collate(rows: list[Any]) -> Any:
        one.asleep_one(0.02)
        one.busy_one(0.02)
        return torch.stack(rows)

    loader = torch.utils.data.DataLoader(list(torch.eye(8)), batch_size=2, collate_fn=collate)
    with mtp.profile(with_python=True, with_stack=True) as prof:
        for batch in loader:
            batch.sum()

    check(prof, one)
    total_ns = next(row.total_ns for row in prof.functions() if row.function == "collate")
    assert total_ns / 1e9 == pytest.approx(sum(one.spent.values()), rel=0.1, abs=0.03)


def test_long_calls_of_c_code_belong_to_their_caller(sampler: str) -> None:
    def calls_c() -> None:
        for _ in range(40):
            sum(range(300_000))

    began = time.perf_counter()
    with mtp.profile(with_python=True) as prof:
        calls_c()
    took = time.perf_counter() - began

    row = next(row for row in prof.functions() if row.function == "calls_c")
    assert row.own_ns > 0.6 * took * 1e9


def test_samples_are_taken_only_where_they_are_asked_for(sampler: str) -> None:
    with mtp.profile() as prof:
        torch.ones(2)

    assert prof.trace.samples is None
    assert prof.trace.stacks is None
    assert len(prof.functions()) == 0


def test_samples_keep_no_local_alive(sampler: str) -> None:
    class Large:
        pass

    gone: list[bool] = []

    def holds() -> None:
        import weakref

        local = Large()
        seen = weakref.ref(local)
        time.sleep(0.02)
        del local
        gone.append(seen() is None)

    with mtp.profile(with_python=True):
        holds()

    assert gone == [True]


def test_an_interval_that_the_program_sets_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTPROF_RECORDER", "off")
    before = sys.getswitchinterval()
    try:
        with mtp.profile(with_python=True):
            sys.setswitchinterval(0.003)
        assert sys.getswitchinterval() == pytest.approx(0.003)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_not_sampled_and_can_profile_itself(sampler: str) -> None:
    before = sys.getswitchinterval()
    with mtp.profile(with_python=True) as prof:
        time.sleep(0.02)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with mtp.profile(with_python=True) as inner:
                    time.sleep(0.03)
                status = 0 if len(inner.functions()) and sys.getswitchinterval() == before else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        time.sleep(0.02)

    assert len(prof.functions())


def test_a_saved_recording_tells_the_same(sampler: str, tmp_path: Path) -> None:
    with mtp.profile(with_python=True) as prof:
        time.sleep(0.02)
    prof.save(tmp_path / "run.mtp")

    assert list(mtp.load(tmp_path / "run.mtp").functions()) == list(prof.functions())
