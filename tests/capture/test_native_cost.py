"""The estimate of the time that the native recorder adds, on traces made by hand and with a cost of the test's own."""

from typing import Any

import pytest
from recording import NATIVE
from traces import event, make_trace

from mtprof_nb.capture.native import native_cost
from mtprof_nb.capture.native.native_cost import cost_ns
from mtprof_nb.capture.native.recorder_loading import recorder
from mtprof_nb.model.trace import Recorded


@pytest.fixture(autouse=True)
def op_of_1000_ns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_cost, "_op_ns", lambda: 1000.0)


def test_events_inside_another_one_cost_less() -> None:
    trace = make_trace([event("a", 0, 100), event("b", 10, 90), event("c", 90, 95), event("d", 100, 120)])
    assert cost_ns(trace) == 2 * 800 + 2 * 550


def test_threads_are_looked_at_one_by_one() -> None:
    rows = [event("a", 0, 100), event("b", 10, 90, thread=2), event("c", 20, 30), event("d", 200, 210, thread=2)]
    assert cost_ns(make_trace(rows)) == 3 * 800 + 550


def test_nodes_of_the_backward_pass_cost_more() -> None:
    trace = make_trace([event("autograd::engine::evaluate_function: MmBackward0", 0, 9), event("MmBackward0", 1, 8)])
    assert cost_ns(trace) == 800 + 7000 + 550


def test_shapes_cost_more_for_each_list() -> None:
    lists = event("b", 10, 19, shapes=((), ()), dtypes=("TensorList", "ScalarList"))
    trace = make_trace([event("a", 0, 9, shapes=((2,),), dtypes=("float",)), lists, event("c", 20, 29)])
    assert trace.recorded.record_shapes
    assert cost_ns(trace) == 3 * (800 + 570) + 2 * 640


def test_stacks_cost_the_same_for_every_event() -> None:
    assert cost_ns(make_trace([event("a", 0, 9)], recorded=Recorded(with_stack=True))) == 1000
    assert cost_ns(make_trace([event("a", 0, 9)], recorded=Recorded(with_modules=True))) == 1000


def test_nothing_costs_nothing() -> None:
    assert cost_ns(make_trace([])) == 0


@pytest.mark.parametrize("hook", [NATIVE])
def test_the_cost_of_an_op_is_measured_and_leaves_nothing_behind(hook: str) -> None:
    module: Any = recorder()
    assert module.op_cost() > 0
    assert not module.is_recording()
    module.start(with_inputs=False, with_stacks=False, with_memory=False, with_ids=False, max_events=1)
    assert module.op_cost() is None
    assert module.stop()["dropped"] > 0
