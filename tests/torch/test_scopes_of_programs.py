"""Scopes of programs that recurse, share a scope among threads or take turns: each closes what it opened."""

import asyncio
import gc
import threading
import weakref

import pytest
from recording import HOOKS, NATIVE

import mtprof_nb as mtp

torch = pytest.importorskip("torch")


def scopes(prof, name):
    return [event for event in prof.events() if event.kind == "scope" and event.name == name]


def parent(event):
    return event.cpu_parent.name if event.cpu_parent is not None else None


@HOOKS
def test_one_scope_that_is_entered_again_closes_the_innermost_first(hook):
    scope = mtp.record_function("again")

    def descend(depth):
        with scope:
            if depth:
                descend(depth - 1)
            torch.ones(1)

    with mtp.profile(hook=hook) as prof:
        descend(2)
        torch.zeros(1)
    outer, middle, inner = scopes(prof, "again")
    assert middle.cpu_parent == outer
    assert inner.cpu_parent == middle
    assert inner.end_ns <= middle.end_ns <= outer.end_ns
    assert [event.cpu_parent for event in prof.events() if event.name == "aten::ones"] == [inner, middle, outer]
    assert [parent(event) for event in prof.events() if event.name == "aten::zeros"] == [None]


@pytest.mark.parametrize("hook", [NATIVE])
def test_one_scope_shared_by_threads_is_closed_by_each_for_itself(hook):
    scope = mtp.record_function("shared")
    entered, left = threading.Barrier(2), threading.Event()

    def first():
        with scope:
            entered.wait()
            left.wait()
            torch.ones(1)

    def second():
        with scope:
            entered.wait()
        torch.zeros(1)
        left.set()

    with mtp.profile(hook=hook) as prof:
        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not any(event.is_async for event in scopes(prof, "shared"))
    assert [parent(event) for event in prof.events() if event.name == "aten::ones"] == ["shared"]
    assert [parent(event) for event in prof.events() if event.name == "aten::zeros"] == [None]


def test_one_scope_shared_by_tasks_is_closed_by_each_for_itself():
    scope = mtp.record_function("shared")

    async def first(entered, left):
        with scope:
            entered.set()
            await left.wait()

    async def second(entered, left):
        await entered.wait()
        with scope:
            torch.ones(1)
        left.set()

    async def both():
        entered, left = asyncio.Event(), asyncio.Event()
        await asyncio.gather(first(entered, left), second(entered, left))

    with mtp.profile() as prof:
        asyncio.run(both())
    outer, inner = scopes(prof, "shared")
    assert outer.end_ns > inner.end_ns


def test_a_task_that_has_ended_and_its_result_are_not_kept():
    results = []

    async def job():
        with mtp.record_function("job"):
            y = torch.ones(9)
            await asyncio.sleep(0)
        return y

    async def jobs():
        results.extend(map(weakref.ref, await asyncio.gather(job(), job())))

    with mtp.profile():
        asyncio.run(jobs())
        gc.collect()
        assert [result() for result in results] == [None, None]


@HOOKS
def test_a_synchronous_scope_of_a_task_owns_its_ops_and_its_time_while_other_tasks_wait(hook):
    async def task(name):
        for _ in range(2):
            with mtp.record_function(f"{name} waits"):
                with mtp.record_function(f"{name} works"):
                    torch.ones(1)
                    torch.ones(1)
                await asyncio.sleep(0)

    async def both():
        with mtp.record_function("around both"):
            await asyncio.gather(task("first"), task("second"))

    with mtp.profile(hook=hook) as prof, mtp.record_function("around the loop"):
        asyncio.run(both())

    assert {name: {event.is_async for event in scopes(prof, name)} for name in prof.trace.names if " " in name} == {
        "around the loop": {False},
        "around both": {True},
        **{f"{name} waits": {True} for name in ("first", "second")},
        **{f"{name} works": {False} for name in ("first", "second")},
    }
    for name in ("first works", "second works"):
        for work in scopes(prof, name):
            ops = [event for event in prof.events() if event.cpu_parent is not None and event.cpu_parent == work]
            assert [event.name for event in ops] == ["aten::ones", "aten::ones"]
            assert work.self_cpu_time_total * 1000 == pytest.approx(
                work.duration_ns - sum(event.duration_ns for event in ops), abs=1
            )


def turns(name):
    with mtp.record_function(name):
        yield torch.ones(1)
        yield torch.ones(1)


@HOOKS
def test_scopes_of_generators_that_take_turns_own_nothing_of_each_other(hook):
    with mtp.profile(hook=hook) as prof:
        for _ in zip(turns("first"), turns("second"), strict=True):
            pass
        with mtp.record_function("alone"):
            torch.zeros(1)
    assert [scopes(prof, name)[0].is_async for name in ("first", "second", "alone")] == [True, True, False]
    assert {parent(event) for event in prof.events() if event.name == "aten::ones"} == {None}
    assert [parent(event) for event in prof.events() if event.name == "aten::zeros"] == ["alone"]


@HOOKS
def test_a_scope_around_several_steps_owns_what_runs_in_it(hook):
    with mtp.profile(hook=hook, schedule=mtp.schedule(wait=0, warmup=0, active=3, repeat=1)) as prof:
        with mtp.record_function("epoch"):
            prof.step()
            torch.ones(1)
            prof.step()
        prof.step()
    assert not any(event.is_async for event in prof.events())
    (op,) = [event for event in prof.events() if event.name == "aten::ones"]
    assert (parent(op), parent(op.cpu_parent)) == ("ProfilerStep#1", "epoch")


@HOOKS
@pytest.mark.parametrize("make", [mtp.record_function, torch.profiler.record_function], ids=["ours", "torch's"])
def test_a_scope_that_is_open_when_the_recording_ends_ends_with_it_and_owns_its_ops(hook, make):
    prof = mtp.profile(hook=hook)
    scope = make("open")
    prof.start()
    scope.__enter__()
    torch.ones(1)
    prof.stop()
    scope.__exit__(None, None, None)
    (found,) = scopes(prof, "open")
    assert not found.is_async
    assert found.end_ns == prof.trace.ended_ns
    assert found.self_cpu_time_total > 0
    assert [parent(event) for event in prof.events() if event.name == "aten::ones"] == ["open"]


@HOOKS
def test_a_scope_that_cannot_be_entered_fails_alone(hook):
    with mtp.profile(hook=hook) as prof:
        with pytest.raises(TypeError, match=r"the name of a scope must be a str, not 5: use record_function\(str"):
            mtp.record_function(5)
        with pytest.raises(RuntimeError, match="args"), mtp.record_function("broken", 5):
            pass
        assert prof._session.scopes._of_thread.scopes == []
        with mtp.record_function("whole"):
            torch.ones(1)

    (whole,) = scopes(prof, "whole")
    assert whole.cpu_parent is None
