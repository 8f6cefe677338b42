"""Phases of real programs: forward is what autograd recorded, or would have; other is the rest."""

from collections.abc import Callable
from typing import Any

import pytest
from recording import NATIVE

import mtprof_nb as mtp

torch = pytest.importorskip("torch")

HOOKS = ("kineto",)
FLAGS: tuple[dict[str, bool], ...] = ({}, {"with_stack": True}, {"with_modules": True})
FLAG_NAMES = ("plain", "stacks", "modules")


def phases(program: Callable[[], Any], hook: str, **flags: bool) -> dict[str, set[str]]:
    """The phases in which outermost ops of each name ran."""
    with mtp.profile(hook=hook, **flags) as prof:
        program()
    found: dict[str, set[str]] = {}
    for event in prof.events():
        if event.kind == "op":
            found.setdefault(event.name, set()).add(event.phase)
    return found


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.last = torch.nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        mask = torch.bernoulli(torch.full_like(x, 0.5))
        return self.last(torch.tanh(self.first(x)) * mask)


@pytest.mark.parametrize("flags", FLAGS, ids=FLAG_NAMES)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_training_step_has_four_phases(hook: str, flags: dict[str, bool]) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    net(torch.rand(4, 8)).sum().backward()

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        x = torch.randn(4, 8).clamp(-1, 1)
        loss = net(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=False)
        optimizer.step()
        torch.sort(loss.detach().expand(3))
        loss.item()

    found = phases(step, hook, **flags)

    assert found["aten::addmm"] == {"forward"}
    assert found["aten::tanh"] == {"forward"}
    assert found["aten::tanh_backward"] == {"backward"}
    assert found["aten::add_"] >= {"optimizer"}
    for name in ("randn", "clamp", "linalg_vector_norm", "sort", "_local_scalar_dense"):
        assert found[f"aten::{name}"] == {"other"}, name
    assert "forward" not in found["aten::zero_"]
    # No node is made for it: only where modules are known is it seen to be of one.
    assert found["aten::bernoulli"] == ({"forward"} if flags else {"other"})


@pytest.mark.parametrize("flags", FLAGS, ids=FLAG_NAMES)
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_evaluation_alone_is_forward_inside_modules_and_outside(hook: str, mode: Any, flags: dict[str, bool]) -> None:
    net, x = Net(), torch.rand(4, 8)

    def evaluate() -> None:
        with mode():
            net(x).softmax(-1).argmax(-1)

    assert set.union(*phases(evaluate, hook, **flags).values()) == {"forward"}


@pytest.mark.parametrize("flags", [{"with_stack": True}, {"with_modules": True}], ids=["stacks", "modules"])
@pytest.mark.parametrize("hook", HOOKS)
def test_evaluation_beside_training_is_forward_where_modules_are_known(hook: str, flags: dict[str, bool]) -> None:
    net, x = Net(), torch.rand(4, 8)

    def train_and_evaluate() -> None:
        net(x).sum().backward()
        with torch.no_grad():
            torch.nn.Softsign()(net(x))
            torch.sort(x)

    found = phases(train_and_evaluate, hook, **flags)
    # Softsign is computed by `abs`, which training has not.
    assert found["aten::abs"] == {"forward"}
    assert found["aten::sort"] == {"other"}
    plain = phases(train_and_evaluate, hook)
    assert plain["aten::abs"] == plain["aten::sort"] == {"other"}


@pytest.mark.parametrize("hook", HOOKS)
def test_the_forward_of_a_custom_function_is_forward_as_a_whole(hook: str) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sinh().atan().cosh()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.erf()

    def program() -> None:
        x = torch.rand(3, requires_grad=True)
        torch.rand(3).sort()
        Twice.apply(x).sum().backward()

    found = phases(program, hook)
    assert found["aten::sinh"] == found["aten::atan"] == found["aten::cosh"] == {"forward"}
    assert found["aten::sort"] == {"other"}
    assert found["aten::erf"] == {"backward"}


@pytest.mark.parametrize("hook", [NATIVE])
def test_the_last_op_of_a_recording_is_forward_if_it_made_a_node(hook: str) -> None:
    x = torch.rand(3, requires_grad=True)

    def recorded() -> None:
        x.sinh()
        x.cosh()

    def not_recorded() -> None:
        x.sinh()
        torch.rand(3).cosh()

    assert phases(recorded, hook)["aten::cosh"] == {"forward"}
    assert phases(not_recorded, hook)["aten::cosh"] == {"other"}


@pytest.mark.parametrize("flags", FLAGS, ids=FLAG_NAMES)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_step_inside_the_backward_pass_is_the_optimizers(hook: str, flags: dict[str, bool]) -> None:
    weight = torch.rand(3, requires_grad=True)
    optimizer = torch.optim.Adam([weight], foreach=False)
    weight.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    # A hook of a tensor runs in the node that made it, which has a number.
    inner = torch.rand(3, requires_grad=True)
    inner.grad = torch.rand(3)
    other = torch.optim.Adagrad([inner], foreach=False)

    def program() -> None:
        y = weight.sinh()
        y.register_hook(lambda grad: other.step())
        y.erf().sum().backward()

    program()
    found = phases(program, hook, **flags)

    assert found["aten::lerp_"] == found["aten::addcdiv_"] == {"optimizer"}
    assert found["aten::cosh"] == found["aten::exp"] == {"backward"}
    with mtp.profile(hook=hook, with_stack=True) as prof:
        program()
    assert sum(row.optimizer_ns for row in prof.lines()) > 0


@pytest.mark.parametrize("hook", HOOKS)
def test_a_closures_pass_inside_a_step_inside_the_backward_pass_is_backward(hook: str) -> None:
    weight, inner = (torch.rand(3, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([inner], lr=0.1, foreach=False)

    def closure() -> Any:
        loss = inner.sinh().sum()
        loss.backward()
        return loss

    def update(_: Any) -> None:
        optimizer.step(closure)

    weight.register_post_accumulate_grad_hook(update)
    found = phases(lambda: weight.erf().sum().backward(), hook)

    assert found["aten::sinh"] == {"forward"}
    assert found["aten::exp"] == found["aten::cosh"] == {"backward"}
    assert "optimizer" in found["aten::add_"]


@pytest.mark.parametrize("hook", ["kineto", NATIVE])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ops_of_a_script_are_of_the_forward_pass_and_its_gradient_is_of_the_script(hook: str) -> None:
    def twice(x):  # type: ignore[no-untyped-def]
        return (x * 2 + 1).relu()

    script, w = torch.jit.script(twice), torch.ones(3, requires_grad=True)
    for _ in range(3):  # then it is compiled
        script(w).sum().backward()
    with mtp.profile(hook=hook) as prof:
        script(w.exp()).sum().backward()

    trace = prof.trace
    names = [trace.names[name] for name in trace.name]
    gradients = [row for row, name in enumerate(names) if name.endswith("DifferentiableGraphBackward")]
    assert {event.phase for event in prof.events() if event.name == "aten::mul" and event.phase != "backward"} == {
        "forward"
    }
    assert [names[forward] for forward in trace.forward[gradients]] == ["<forward op>"] * 2
