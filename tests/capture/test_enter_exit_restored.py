"""The hook of MindTorch v2 and Candle, on a stand-in: its limits, what it leaves alone, and that nothing stays."""

import gc
import os
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest
from enter_exit_recording import POINTS, names_of, new_hook, runtime_state
from recording import EVERY_FLAG
from standin import minitensor as mt
from standin.minitensor._autograd import engine
from standin.minitensor._dispatch import dispatcher
from standin.minitensor.profiler import profiler as runtime_profiler

from mtprof_nb.capture.eager.eager_hook import EnterExitHook, Runtime
from mtprof_nb.capture.hook import Request
from mtprof_nb.errors import HookError

pytestmark = pytest.mark.usefixtures("nothing_stays_patched")


def test_recording_stops_at_the_limit_and_counts_what_it_dropped() -> None:
    hook = new_hook(max_events=3)
    hook.start()
    for _ in range(10):
        mt.ones(2).sum()
    trace = hook.stop()

    assert (len(trace), trace.dropped, trace.dropped_exactly) == (3, 7, True)
    assert trace.end_ns.max() <= trace.unrecorded[0].began_ns <= trace.ended_ns


def test_ops_of_an_activity_that_is_off_are_not_recorded_and_do_not_count() -> None:
    hook = new_hook(activities=frozenset({"NPU"}), max_events=1)
    hook.start()
    mt.ones(2).sum()
    mt.ones(2, device="npu") + mt.ones(2, device="npu")
    trace = hook.stop()

    assert (names_of(trace), trace.dropped) == (["aten::add"], 0)


@pytest.mark.parametrize("activity", ["CPU", "NPU"])
def test_a_device_given_as_text_with_an_index_is_left_out_with_its_activity(activity: str) -> None:
    hook = new_hook(activities=frozenset({activity}))
    hook.start()
    mt.dispatch("sum", "cpu:0", mt.ones(2))
    mt.dispatch("sum", "npu:1", mt.ones(2))
    trace = hook.stop()

    assert [trace.devices[device] for device in trace.device] == [activity]


def test_an_activity_can_be_turned_off_and_on_while_recording() -> None:
    hook = new_hook()
    hook.start()
    mt.ones(2).sum()
    hook.toggle(False, frozenset({"CPU"}))
    mt.ones(2) + mt.ones(2)
    mt.ones(2, device="npu") + mt.ones(2, device="npu")
    hook.toggle(False, frozenset({"NPU"}))
    mt.ones(2, device="npu").sum()
    hook.toggle(True, frozenset({"CPU"}))
    mt.ones(2) * mt.ones(2)
    trace = hook.stop()

    assert names_of(trace) == ["aten::sum", "aten::add", "aten::mul"]


def test_an_activity_turned_on_before_or_after_the_recording_installs_nothing() -> None:
    before = runtime_state()
    hook = new_hook()
    hook.toggle(True, frozenset({"NPU"}))
    assert runtime_state() == before
    hook.start()
    hook.stop()
    hook.toggle(True, frozenset({"CPU"}))
    assert runtime_state() == before


def test_the_runtimes_own_profiler_sees_the_same_before_during_and_after() -> None:
    def recorded() -> list[str]:
        with mt.profiler.profile() as own:
            with mt.profiler.record_function("scope"):
                mt.ones(2) + mt.ones(2)
            with mt.pipeline():
                mt.ones(2).sum()
        return own.names()

    before = recorded()
    hook = new_hook(**EVERY_FLAG)
    hook.start()
    during = recorded()
    trace = hook.stop()

    assert before == during == recorded() == ["add", "scope"]
    assert names_of(trace) == ["aten::add", "aten::sum"]


def test_an_op_that_outlives_the_recording_is_dropped_and_the_runtimes_own_record_of_it_is_not() -> None:
    hook = new_hook()
    hook.start()
    with mt.profiler.profile() as own:
        token = runtime_profiler.dispatch_op_enter("add", "cpu", (), {})
        trace = hook.stop()
        runtime_profiler.dispatch_op_exit(token)

    assert len(trace) == 0
    assert own.names() == ["add"]


def test_an_op_that_began_before_the_recording_stays_the_runtimes_own() -> None:
    hook = new_hook()
    with mt.profiler.profile() as own:
        token = runtime_profiler.dispatch_op_enter("add", "cpu", (), {})
        hook.start()
        runtime_profiler.dispatch_op_exit(token)
        trace = hook.stop()

    assert (len(trace), own.names()) == (0, ["add"])


def test_a_users_exception_passes_unchanged_and_the_op_is_recorded() -> None:
    raised = KeyError("mine")

    def kernel(a: Any) -> Any:
        raise raised

    hook = new_hook(**EVERY_FLAG)
    hook.start()
    try:
        dispatcher.KERNELS["mine"] = kernel
        with pytest.raises(KeyError) as caught:
            mt.dispatch("mine", "cpu", mt.ones(2))
    finally:
        del dispatcher.KERNELS["mine"]
        trace = hook.stop()

    assert caught.value is raised
    assert caught.value.__context__ is None
    assert names_of(trace) == ["aten::mine"]


@pytest.mark.parametrize("broken", ["_PendingOp", "_RecordFunction", "Optimizer", "_run_backward"])
def test_nothing_stays_patched_after_a_start_that_failed(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    owner = {
        "_PendingOp": dispatcher,
        "_RecordFunction": runtime_profiler,
        "Optimizer": mt.optim,
        "_run_backward": engine,
    }
    hook = new_hook(**EVERY_FLAG)
    with monkeypatch.context() as patch:
        patch.delattr(owner[broken], broken)
        with pytest.raises(HookError, match=f"not a version that this hook knows.*{broken}.*update mtprof_nb"):
            hook.start()
        trace = hook.stop()

    assert len(trace) == 0


def test_stop_may_come_twice_and_without_a_start() -> None:
    assert len(new_hook().stop()) == 0
    hook = new_hook()
    hook.start()
    mt.ones(2).sum()
    assert len(hook.stop()) == 1
    mt.ones(2).sum()
    assert len(hook.stop()) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_is_left_unpatched_and_the_parent_goes_on() -> None:
    before = runtime_state()
    hook = new_hook(**EVERY_FLAG)
    hook.start()
    child = os.fork()
    if not child:
        hook.abandon()
        mt.ones(2).sum()
        os._exit(0 if runtime_state() == before else 1)
    _, status = os.waitpid(child, 0)
    mt.ones(2).sum()
    trace = hook.stop()

    assert os.waitstatus_to_exitcode(status) == 0
    assert names_of(trace) == ["aten::sum"]


def test_with_every_flag_off_no_argument_is_touched_and_no_stack_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    def walked(*_args: Any) -> Any:
        raise AssertionError("the stack was walked")

    hook = new_hook()
    hook.start()
    monkeypatch.setattr(sys, "_getframe", walked)
    token = runtime_profiler.dispatch_op_enter("op", "cpu", (Untouchable(),), {"a": Untouchable()})
    runtime_profiler.dispatch_op_exit(token)
    monkeypatch.undo()
    trace = hook.stop()

    assert len(trace) == 1
    optional = (trace.shape, trace.stack, trace.memory_before, trace.flops, trace.module, trace.allocations)
    assert optional == (None,) * 6


def test_no_tensor_is_kept_alive_by_the_recording() -> None:
    hook = new_hook(**EVERY_FLAG)
    hook.start()
    result = mt.ones(2, 3) @ mt.ones(3, 4, requires_grad=True)
    result.backward()
    alive = [weakref.ref(result), weakref.ref(result.grad_fn.inputs[0])]
    del result
    gc.collect()
    still_there = [reference() for reference in alive]
    hook.stop()

    assert still_there == [None, None]


def test_results_are_the_same_with_and_without_a_recording() -> None:
    def program() -> np.ndarray:
        layer = mt.nn.Linear(3, 4)
        loss = (layer(mt.tensor([[1, 2, 3]])) * mt.ones(1, 4)).sum()
        loss.backward()
        return np.concatenate([loss.array.ravel(), layer.weight.grad.array.ravel()])

    alone = program()
    hook = new_hook(**EVERY_FLAG)
    hook.start()
    recorded = program()
    hook.stop()

    assert recorded.tolist() == alone.tolist()


def test_a_runtime_without_points_is_a_hook_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(runtime_profiler, "dispatch_op_enter")
    with pytest.raises(HookError, match=r"no enter and exit points to listen at.*update mtprof_nb"):
        new_hook()


def test_points_that_are_compiled_are_a_hook_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_profiler, "dispatch_op_exit", len)
    with pytest.raises(HookError, match="no enter and exit points"):
        new_hook()


def test_a_runtime_without_an_engine_is_a_hook_error_that_names_it() -> None:
    runtime = Runtime("standin.minitensor", engine="nowhere", node="_autograd.node", cpu_storage=("_storage", "x"))
    with pytest.raises(HookError, match="has no module 'nowhere'"):
        EnterExitHook(runtime, Request())


def test_what_somebody_else_replaced_meanwhile_is_left_to_them() -> None:
    original = mt.nn.Module.__call__
    hook = new_hook(with_modules=True)
    hook.start()
    ours = mt.nn.Module.__call__

    def theirs(module: Any, *args: Any) -> Any:
        return ours(module, *args)

    mt.nn.Module.__call__ = theirs
    hook.stop()
    try:
        assert mt.nn.Module.__call__ is theirs
        assert mt.nn.Linear(2, 2)(mt.ones(1, 2)).shape == (1, 2)
    finally:
        mt.nn.Module.__call__ = original


def test_the_points_are_plain_functions_as_the_hook_needs_them() -> None:
    assert all(isinstance(getattr(runtime_profiler, name), types.FunctionType) for name in POINTS)
