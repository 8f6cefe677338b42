"""Steps of an optimizer that run forward and backward themselves: each op has the phase of what it does."""

from typing import Any

import pytest
from recording import HOOKS
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.building.closures import with_closures
from mtprof_nb.model.trace import PHASES, Trace


def _step(start_ns: int, end_ns: int, name: str = "Optimizer.step#SGD.step") -> dict[str, Any]:
    return event(name, start_ns, end_ns, kind="scope", phase="optimizer")


def _op(name: str, start_ns: int, end_ns: int, **facts: Any) -> dict[str, Any]:
    return event(name, start_ns, end_ns, **{"phase": "optimizer", **facts})


def _phases(trace: Trace) -> list[str]:
    return [PHASES[phase] for phase in with_closures(vars(trace)).tolist()]


def test_what_the_backward_pass_goes_back_through_is_forward_and_so_is_what_lies_between() -> None:
    trace = make_trace(
        [
            _step(0, 100),
            _op("aten::linear", 10, 20, sequence_nr=1),
            _op("aten::addmm", 12, 18, sequence_nr=1),
            _op("aten::copy_", 13, 14),
            _op("aten::arange", 21, 24),
            event("loss", 25, 30, kind="scope", phase="optimizer"),
            _op("aten::sum", 26, 29, sequence_nr=2),
            _op("aten::ones_like", 31, 32, phase="backward"),
            _op("SumBackward0", 33, 34, phase="backward", sequence_nr=2, forward=6),
            _op("AddmmBackward0", 35, 36, phase="backward", sequence_nr=1, forward=2),
            _op("aten::add_", 40, 50),
        ]
    )

    forward, backward = ["forward"] * 4, ["backward"] * 3
    assert _phases(trace) == ["optimizer", *forward, "other", "forward", *backward, "optimizer"]


def test_each_evaluation_of_a_line_search_is_told_from_the_work_between_them() -> None:
    trace = make_trace(
        [
            _step(0, 100),
            _op("aten::mm", 5, 10, sequence_nr=1),
            _op("MmBackward0", 11, 12, phase="backward", forward=1),
            _op("aten::add_", 20, 25),
            _op("aten::mm", 30, 35, sequence_nr=2),
            _op("MmBackward0", 36, 37, phase="backward", forward=4),
            _op("aten::add_", 40, 45, sequence_nr=3),
            _op("aten::linear", 50, 59, sequence_nr=3),
            _op("aten::mm", 52, 57, sequence_nr=3),
            _op("MmBackward0", 60, 61, phase="backward", forward=8),
            _op("aten::add_", 70, 75),
        ]
    )

    evaluated = ["forward", "backward", "optimizer"]
    assert _phases(trace) == ["optimizer", *evaluated, *evaluated, "forward", *evaluated]


def test_what_is_differentiated_after_the_step_is_the_optimizer_s_as_in_one_that_is_itself_differentiable() -> None:
    trace = make_trace(
        [
            _step(200, 300),
            _op("aten::mul", 210, 215, sequence_nr=3),
            _op("aten::add_", 230, 235),
            _op("MulBackward0", 400, 401, phase="backward", forward=1),
        ]
    )

    assert _phases(trace) == ["optimizer"] * 3 + ["backward"]


def test_a_step_inside_a_closure_is_the_other_optimizer_s() -> None:
    trace = make_trace(
        [
            _step(0, 100),
            _op("aten::mm", 5, 10, sequence_nr=1),
            _step(20, 40, "Optimizer.step#Adam.step"),
            _op("aten::add_", 25, 30),
            _op("aten::sum", 45, 50, sequence_nr=2),
            _op("SumBackward0", 60, 61, phase="backward", forward=4),
            _op("MmBackward0", 62, 63, phase="backward", forward=1),
            _op("aten::add_", 70, 75),
        ]
    )

    inner = ["optimizer"] * 2
    assert _phases(trace) == [*("optimizer", "forward", *inner, "forward", "backward", "backward", "optimizer")]


def test_work_before_with_autograd_on_belongs_to_the_closure_and_without_to_the_optimizer() -> None:
    trace = make_trace(
        [
            _step(0, 100),
            _op("aten::add_", 1, 2),
            _op("aten::div", 3, 4, sequence_nr=0),
            _op("aten::empty", 5, 6),
            _op("aten::mm", 7, 8, sequence_nr=0),
            _op("MmBackward0", 11, 12, phase="backward", forward=4),
        ]
    )

    assert _phases(trace) == ["optimizer", "optimizer", "forward", "forward", "forward", "backward"]


def test_an_op_that_no_number_is_known_of_is_forward_all_the_same() -> None:
    trace = make_trace(
        [_step(0, 100), _op("mm", 7, 8), _op("mm_backward", 11, 12, phase="backward", forward=1), _op("add_", 20, 30)]
    )

    assert _phases(trace) == ["optimizer", "forward", "backward", "optimizer"]


def test_gradients_that_a_closure_sets_to_zero_are_the_optimizer_s() -> None:
    trace = make_trace(
        [
            _step(0, 100),
            _op("aten::mul", 1, 2, sequence_nr=0),
            _step(3, 6, "Optimizer.zero_grad#SGD.zero_grad"),
            _op("aten::zero_", 4, 5, sequence_nr=0),
            _op("aten::mm", 7, 8, sequence_nr=0),
            _op("MmBackward0", 11, 12, phase="backward", forward=4),
        ]
    )

    assert _phases(trace) == ["optimizer", "forward", "optimizer", "optimizer", "forward", "backward"]


def test_a_pass_may_run_on_another_thread() -> None:
    trace = make_trace(
        [
            _step(0, 100),
            _op("aten::mm", 5, 10, sequence_nr=1),
            _op("aten::other", 6, 7, thread=3),
            _op("MmBackward0", 11, 12, phase="backward", forward=1, thread=2),
            _op("aten::add_", 40, 50),
        ]
    )

    assert _phases(trace) == ["optimizer", "forward", "optimizer", "backward", "optimizer"]


def test_a_step_without_a_closure_is_left_as_it_is() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 5, sequence_nr=1),
            event("MmBackward0", 6, 7, phase="backward", forward=0),
            _step(10, 100),
            _op("aten::add_", 11, 12, sequence_nr=2),
        ]
    )

    assert with_closures(vars(trace)) is trace.phase


torch = pytest.importorskip("torch")


def _fitted(optimizer: Any, weight: Any) -> None:
    x = torch.ones(8, 4)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x / 2) @ weight).relu().sum() + torch.full((), 3.0)
        loss.backward()
        return loss

    optimizer.step(closure)


class Sharpened(torch.optim.SGD):
    """Moves the parameters, evaluates there, and moves on from where it was."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        with torch.no_grad():
            for group in self.param_groups:
                for weight in group["params"]:
                    weight.sub_(0.5)
        with torch.enable_grad():
            closure()
        super().step()


class OfOldStyle(torch.optim.SGD):
    """Works on `data`, with autograd on, as optimizers did before there was no_grad."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        closure()
        for group in self.param_groups:
            for weight in group["params"]:
                weight.data.addcmul_(weight.grad.data, weight.grad.data, value=-0.1)


@HOOKS
@pytest.mark.parametrize(
    ("kind", "updates"),
    [
        (torch.optim.SGD, {"aten::add_": 1}),
        (torch.optim.LBFGS, {"aten::dot": 1}),
        (Sharpened, {"aten::sub_": 1, "aten::add_": 1}),
        (OfOldStyle, {"aten::addcmul_": 1}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_real_closure_runs_forward_inside_its_step(hook: str, kind: Any, updates: dict[str, int]) -> None:
    weight = torch.full((4, 4), 0.3, requires_grad=True)
    optimizer = kind([weight], lr=0.01, **({"max_iter": 2} if kind is torch.optim.LBFGS else {}))
    with mtp.profile(hook=hook) as prof:
        _fitted(optimizer, weight)
    trace = prof.trace
    phases: dict[str, list[str]] = {}
    for name, phase in zip(trace.name.tolist(), trace.phase.tolist(), strict=True):
        phases.setdefault(trace.names[name], []).append(PHASES[phase])

    assert set(phases["aten::relu"]) == set(phases["aten::full"]) == {"forward"}
    assert len(phases["aten::relu"]) == (1 if kind is not torch.optim.LBFGS else 2)
    assert phases["aten::mm"].count("forward") == len(phases["aten::relu"])
    for name, least in updates.items():
        assert phases[name].count("optimizer") >= least
