"""Ops of other threads: running before, started meanwhile, of pools old and new, with every hook and flag."""

import contextlib
import io
import json
import queue
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from marked_cells import new_shell
from recording import EVERY_FLAG

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import kineto_hook as kineto

WITHOUT_MEMORY = [
    {"hook": hook, **flags}
    for hook in ("kineto", "dispatch")
    for flags in ({}, {"with_stack": True}, {"record_shapes": True, "with_flops": True, "with_modules": True})
]
WITH_MEMORY = [
    {"hook": hook, **flags} for hook in ("kineto", "dispatch") for flags in ({"profile_memory": True}, EVERY_FLAG)
]
AS_DISPATCH = (
    "ops of other threads are recorded as by hook 'dispatch', without composite ops and without their memory: here "
    "Kineto records only the thread that profiles"
)
NO_MEMORY = "profile_memory: CPU memory of other threads is not recorded; run their ops on the profiling thread"
MISSING = (
    "thread 'consumer' began before the recording and ran during it: any ops that ran there are missing; start "
    "threads inside the recording, or profile without profile_memory"
)
OTHERS_WARNING = {"kineto": AS_DISPATCH, "dispatch": NO_MEMORY}
MISSING_WARNING = {"kineto": f"profile_memory: {MISSING}", "dispatch": MISSING}


def run(count: int) -> None:
    """So many ops, none of them composite."""
    x = torch.ones(2)
    for _ in range(count - 1):
        x = x.add(1)


def ops(prof: mtp.profile) -> list[Any]:
    return [event for event in prof.events() if event.name in ("aten::ones", "aten::add")]


class Consumer(threading.Thread):
    """A thread that runs what is put into its queue."""

    def __init__(self) -> None:
        super().__init__(name="consumer")
        self.work: queue.Queue[int | None] = queue.Queue()
        self.start()

    def run(self) -> None:
        while (count := self.work.get()) is not None:
            run(count)
            self.work.task_done()

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.work.put(None)
        self.join()


def threads_meanwhile(pool: ThreadPoolExecutor) -> None:
    """250 ops: in a pool that was there, in a new one, and in a thread."""
    pool.submit(run, 100).result()
    with ThreadPoolExecutor(2) as new:
        list(new.map(run, (25, 25)))
    thread = threading.Thread(target=run, args=(100,))
    thread.start()
    thread.join()


def profiled(options: dict[str, Any], program: Callable[[], None]) -> tuple[mtp.profile, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with mtp.profile(**options) as prof:
            program()
    return prof, [str(warning.message) for warning in caught]


def everywhere(options: dict[str, Any]) -> tuple[mtp.profile, list[str]]:
    """304 ops: 4 here, 250 in threads that are new or given work, 50 in one that runs already."""
    with ThreadPoolExecutor(1) as pool, Consumer() as consumer:
        pool.submit(int).result()

        def program() -> None:
            run(4)
            threads_meanwhile(pool)
            consumer.work.put(50)
            consumer.work.join()

        return profiled(options, program)


@pytest.mark.parametrize("options", WITHOUT_MEMORY, ids=str)
def test_without_memory_every_op_of_every_thread_is_recorded(options: dict[str, Any]) -> None:
    prof, messages = everywhere(options)
    assert (len(ops(prof)), messages) == (304, [])
    assert {event.thread_id for event in ops(prof)} == {thread.native_id for thread in prof.trace.tracks}


@pytest.mark.parametrize("options", WITH_MEMORY, ids=str)
def test_with_memory_only_a_thread_that_ran_before_is_missing_and_named(options: dict[str, Any]) -> None:
    prof, messages = everywhere(options)
    assert len(ops(prof)) == 254
    assert sorted(messages) == sorted((OTHERS_WARNING[options["hook"]], MISSING_WARNING[options["hook"]]))


@pytest.mark.parametrize("options", WITH_MEMORY, ids=str)
def test_with_memory_a_program_whose_ops_all_run_elsewhere_shows_them(options: dict[str, Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        prof, messages = profiled(options, lambda: threads_meanwhile(pool))
    assert len(ops(prof)) == 250
    assert messages == [OTHERS_WARNING[options["hook"]]]
    assert {row.key: row.count for row in prof.key_averages()}["aten::add"] == 246


@pytest.mark.parametrize("options", WITH_MEMORY, ids=str)
def test_memory_of_the_profiling_thread_is_the_same_whatever_others_do(options: dict[str, Any]) -> None:
    def own() -> None:
        kept = torch.zeros(1000)
        kept.add(1)

    def both() -> None:
        worker = threading.Thread(target=run, args=(50,))
        worker.start()
        own()
        worker.join()

    alone, _ = profiled(options, own)
    beside, _ = profiled(options, both)
    here = threading.get_native_id()
    found = [
        [event.cpu_memory_allocated_delta for event in prof.events() if event.kind == "op" and event.thread_id == here]
        for prof in (alone, beside)
    ]
    assert found[0] == found[1]
    assert max(found[0]) == 4000
    elsewhere = [event for event in ops(beside) if event.thread_id != here]
    assert len(elsewhere) == 50
    assert not any(event.get("cpu_memory_allocated_delta") for event in elsewhere)


@pytest.mark.parametrize("options", WITH_MEMORY, ids=str)
def test_threads_that_only_wait_are_no_reason_to_warn(options: dict[str, Any]) -> None:
    ending = threading.Event()
    before = threading.Thread(target=ending.wait)
    before.start()
    time.sleep(0.1)  # until it waits: what it runs to get there may take longer than a thread that wakes up

    def program() -> None:
        run(2)
        meanwhile = threading.Thread(target=threading.Event().wait, args=(0.01,))
        meanwhile.start()
        meanwhile.join()

    prof, messages = profiled(options, program)
    ending.set()
    before.join()
    assert (len(ops(prof)), messages) == (2, [])


def test_work_that_a_pool_was_given_before_is_recorded_from_the_start_on() -> None:
    begun, going, finished = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        torch.ones(2)
        begun.set()
        going.wait()
        run(20)
        finished.set()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)
        begun.wait()

        def program() -> None:
            going.set()
            finished.wait()
            pool.submit(run, 30).result()

        prof, messages = profiled({"hook": "dispatch"}, program)
    assert (len(ops(prof)), messages) == (50, [])


def test_kineto_does_not_follow_how_the_ops_of_other_threads_are_read_out(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[int] = []
    build_trace = kineto.build_trace

    def count(results: Any, *args: Any) -> Any:
        followed.append(len(results.events()))
        return build_trace(results, *args)

    monkeypatch.setattr(kineto, "build_trace", count)

    def program(times: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run, times).result()

    for times in (10, 10, 2_000):
        prof, _ = profiled({"hook": "kineto", **EVERY_FLAG}, lambda times=times: program(times))
        assert len(ops(prof)) == times
    _, few, many = followed  # the first one also imports
    assert many < few + 1_000


def test_an_op_has_one_name_on_all_threads(tmp_path: Path) -> None:
    def program() -> None:
        run(2)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run, 2).result()

    prof, _ = profiled({"hook": "kineto", "profile_memory": True}, program)
    prof.export_chrome_trace(tmp_path / "trace.json")
    written = [one["name"] for one in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]
    rows = {row.key: row.count for row in prof.key_averages(group_by_overload_name=True)}
    assert rows["aten::add"] == rows["aten::ones"] == 2
    assert (written.count("aten::add"), [name for name in written if name.startswith("aten::add.")]) == (2, [])


def test_what_is_switched_off_is_left_out_on_a_thread_that_ran_before_too() -> None:
    with Consumer() as consumer, mtp.profile(hook="dispatch") as prof:
        for enable, count in ((False, 50), (True, 20)):
            prof.toggle_collection_dynamic(enable, ["CPU"])
            consumer.work.put(count)
            consumer.work.join()
    assert len(ops(prof)) == 20


@pytest.mark.parametrize("options", [{"hook": "dispatch"}, {"hook": "kineto", "profile_memory": True}], ids=str)
def test_threads_together_hold_no_more_than_max_events(options: dict[str, Any]) -> None:
    with Consumer() as consumer, ThreadPoolExecutor(1) as pool:

        def program() -> None:
            run(20)
            consumer.work.put(20)
            consumer.work.join()
            pool.submit(run, 20).result()

        prof, messages = profiled({**options, "max_events": 30}, program)
        whole, _ = profiled(options, program)
    assert (len(prof.trace), len(whole.trace) > 30) == (30, True)
    assert prof.trace.dropped > 0
    assert len([message for message in messages if "max_events=30 was reached" in message]) == 1


def test_ops_that_are_few_on_each_thread_are_together_no_more_than_max_events() -> None:
    def program() -> None:
        torch.ones(2).add_(1)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run, 20).result()

    prof, messages = profiled({"hook": "kineto", "profile_memory": True, "max_events": 21}, program)
    whole, _ = profiled({"hook": "kineto", "profile_memory": True}, program)
    missing = len(whole.trace) - 21
    assert (len(prof.trace), prof.trace.dropped) == (21, missing)
    first, second = messages
    assert first == AS_DISPATCH
    assert second.endswith(
        f"and {missing} events are missing: max_events=21 was reached; raise max_events, or use a schedule"
    )


def test_a_torch_profiler_that_takes_kineto_away_leaves_the_thread_that_ran_before_missing_and_named() -> None:
    with Consumer() as consumer:

        def program() -> None:
            run(2)
            with torch.profiler.profile():
                consumer.work.put(50)
                consumer.work.join()

        prof, messages = profiled({"hook": "dispatch"}, program)
    assert len(ops(prof)) == 2
    assert messages == [MISSING.removesuffix(", or profile without profile_memory")]


@pytest.mark.parametrize("options", [*WITHOUT_MEMORY, *WITH_MEMORY], ids=str)
def test_forward_backward_and_scopes_of_another_thread_are_recorded_once(options: dict[str, Any]) -> None:
    def train() -> None:
        x = torch.ones(2, requires_grad=True)
        with mtp.record_function("ours"), torch.profiler.record_function("theirs"):
            x.mul(3).sum().backward()

    def program() -> None:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()

    prof, _ = profiled(options, program)
    assert [event.name for event in prof.events() if event.kind == "scope"] == ["ours", "theirs"]
    assert [event.phase for event in prof.events() if event.name == "aten::mul"] == ["forward", "backward"]


@pytest.mark.parametrize("options", WITH_MEMORY, ids=str)
def test_a_thread_that_outlives_the_recording_goes_on_unrecorded(options: dict[str, Any]) -> None:
    first, going, finished = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        run(5)
        first.set()
        going.wait()
        run(7)
        finished.set()

    thread = threading.Thread(target=work)

    def program() -> None:
        thread.start()
        first.wait()

    prof, _ = profiled(options, program)
    following, _ = profiled({"hook": options["hook"]}, lambda: run(3))
    going.set()
    thread.join()
    assert (len(ops(prof)), len(ops(following))) == (5, 3)


@pytest.mark.parametrize("flags", ["--all", "--profile-memory", "--hook dispatch --all"])
def test_a_cell_whose_ops_run_in_a_pool_shows_them(flags: str) -> None:
    with new_shell() as shell, contextlib.redirect_stderr(io.StringIO()):
        shell.ip.user_ns |= {"run": run, "ThreadPoolExecutor": ThreadPoolExecutor}
        shell.ip.run_line_magic("load_ext", "mtprof_nb")
        shell.ip.run_cell(
            f"%%mtprofile -q -o prof {flags}\nwith ThreadPoolExecutor(2) as pool:\n    list(pool.map(run, (20, 30)))"
        )
        shell.ip.run_line_magic("unload_ext", "mtprof_nb")
        assert len(ops(shell.ip.user_ns["prof"])) == 50
