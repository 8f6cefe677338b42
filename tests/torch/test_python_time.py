"""Programs whose functions note when they run: samples agree with them, however busy the machine is."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from timed_functions import check, track_of, until_asleep

import mtprof_nb as mtp
from mtprof_nb.advice.causes.where_time_went import waiting
from mtprof_nb.capture.native.recorder_loading import recorder

torch = pytest.importorskip("torch")


@pytest.fixture(params=["native", "python"])
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to take samples."""
    if request.param == "python":
        monkeypatch.setenv("MTPROF_RECORDER", "off")
    elif recorder() is None:
        pytest.skip("the native recorder is not built")
    return str(request.param)


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
    total_ns = {row.function: row.total_ns for row in prof.functions()}
    assert total_ns["collate"] >= total_ns["busy_one"] + total_ns["asleep_one"]


def slow(rows: list[Any]) -> Any:
    time.sleep(0.02)
    return torch.stack(rows)


def test_work_of_a_loader_s_processes_is_waiting_in_its_next(sampler: str) -> None:
    loader = torch.utils.data.DataLoader(list(torch.eye(16)), batch_size=2, collate_fn=slow, num_workers=1)
    with mtp.profile(with_python=True, with_stack=True) as prof:
        for batch in loader:
            batch.sum()

    is_main = prof.trace.samples.track == track_of(prof, threading.main_thread())
    assert prof.trace.samples.is_waiting[is_main].any()
    names = {row.function for row in prof.functions()}
    assert "__next__" in names
    assert "slow" not in names
    assert {"DataLoader's next"} <= {one.title for one in waiting(prof.trace)}


def test_long_calls_of_c_code_belong_to_their_caller(sampler: str) -> None:
    def calls_c() -> None:
        for _ in range(40):
            sum(range(300_000))

    with mtp.profile(with_python=True) as prof:
        calls_c()

    assert max(prof.functions(), key=lambda row: row.own_ns).function == "calls_c"


def test_samples_are_taken_only_where_they_are_asked_for(sampler: str) -> None:
    with mtp.profile() as prof:
        torch.ones(2)

    assert prof.trace.samples is None
    assert prof.trace.stacks is None
    assert len(prof.functions()) == 0


def test_a_thread_that_sleeps_throughout_has_no_time(sampler: str) -> None:
    wake = threading.Event()

    def sleeps_throughout() -> None:
        wake.wait()

    sleeper = threading.Thread(target=sleeps_throughout)
    sleeper.start()
    until_asleep(sleeper)
    recordings: list[set[str]] = []
    try:
        while sum(map(bool, recordings)) < 5 and len(recordings) < 200:  # a busy machine may leave no time for a sample
            with mtp.profile(with_python=True) as prof:
                end = time.perf_counter() + 0.01
                while time.perf_counter() < end:
                    pass
            recordings.append({row.function for row in prof.functions()})
    finally:
        wake.set()
        sleeper.join()

    found = set.union(*recordings)
    assert "test_a_thread_that_sleeps_throughout_has_no_time" in found
    assert "sleeps_throughout" not in found


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
                    time.sleep(0.1)
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
