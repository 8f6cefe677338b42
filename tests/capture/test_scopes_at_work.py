"""Scopes that record themselves: on threads, in generators and tasks, and up to the limit."""

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest
from recording import column

from mtprof_nb.capture.buffers.scopes_hook import ScopesHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import Recorded


def _scopes(max_events: int = 1000, **flags: bool) -> ScopesHook:
    hook = ScopesHook(Request(recorded=Recorded(**flags), max_events=max_events))
    hook.prepare()
    hook.start()
    return hook


def test_scopes_nest_are_in_order_of_start_and_are_closed_by_exceptions() -> None:
    hook = _scopes()
    with pytest.raises(KeyError), hook.scope("outer"), hook.scope("inner"):
        raise KeyError("mine")
    trace = hook.stop()

    assert [trace.names[name] for name in trace.name] == ["outer", "inner"]
    assert trace.start_ns[0] <= trace.start_ns[1]
    assert trace.end_ns[1] <= trace.end_ns[0] <= trace.ended_ns
    assert trace.stack is None


def test_the_stack_of_a_scope_is_where_it_was_opened() -> None:
    hook = _scopes(with_stack=True)
    line = sys._getframe().f_lineno + 1
    with hook.scope("mine"):
        pass
    trace = hook.stop()

    assert trace.stacks is not None
    assert trace.stack is not None
    innermost = trace.stacks.stack(int(trace.stack[0]))[0]
    assert (innermost.file, innermost.line) == (__file__, line)
    assert innermost.function == "test_the_stack_of_a_scope_is_where_it_was_opened"


def test_a_scope_that_is_still_open_at_the_end_ends_there_and_closing_it_later_is_harmless() -> None:
    hook = _scopes()
    still_open = hook.scope("open")
    still_open.__enter__()
    trace = hook.stop()
    still_open.__exit__(None, None, None)

    assert trace.names == ("open",)
    assert trace.end_ns.tolist() == [trace.ended_ns]


def test_a_scope_opened_after_the_end_is_nothing() -> None:
    hook = _scopes()
    hook.stop()
    with hook.scope("late"):
        pass

    assert len(hook.stop()) == 0


def test_a_generator_that_outlives_the_recording_is_harmless() -> None:
    hook = _scopes()

    def items() -> Iterator[int]:
        with hook.scope("generator"):
            yield 1
            yield 2

    running = items()
    next(running)
    trace = hook.stop()

    assert list(running) == [2]
    assert trace.names == ("generator",)


def test_a_scope_that_ends_on_another_thread_is_asynchronous() -> None:
    hook = _scopes()
    wandering = hook.scope("wandering")
    wandering.__enter__()
    thread = threading.Thread(target=wandering.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    trace = hook.stop()

    assert trace.is_async.tolist() == [True]
    assert trace.tracks[0].name == "MainThread"


def test_scopes_of_tasks_that_take_turns_are_asynchronous() -> None:
    hook = _scopes()

    async def task(name: str, turns: int) -> None:
        with hook.scope(name):
            for _ in range(turns):
                await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(task("a", 2), task("b", 4))

    asyncio.run(both())
    assert column(hook.stop(), "is_async") == {"a": True, "b": True}


def test_scopes_count_towards_the_limit_and_what_is_dropped_is_counted_over_all_threads() -> None:
    hook = _scopes(max_events=5)

    def work() -> None:
        for _ in range(10):
            with hook.scope("scope"):
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace = hook.stop()

    assert (len(trace), trace.dropped, len(trace.unrecorded)) == (5, 25, 1)


def test_a_thread_that_ended_before_the_recording_did_keeps_its_events_and_its_name() -> None:
    hook = _scopes()

    def work() -> None:
        with hook.scope("done"):
            pass

    thread = threading.Thread(target=work, name="short-lived")
    thread.start()
    thread.join()

    assert [thread.name for thread in hook.stop().tracks] == ["short-lived"]


def test_toggling_activities_does_not_concern_scopes() -> None:
    hook = _scopes()
    hook.toggle(False, frozenset({"CPU"}))
    with hook.scope("mine"):
        pass

    assert hook.stop().names == ("mine",)
