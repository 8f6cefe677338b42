"""Modules, optimizers and formulas that are half made, or fail when asked: trace and program are whole."""

from typing import Any

import pytest
from recording import NATIVE

import mtprof_nb as mtp

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


class Unfinished(nn.Module):
    def __init__(self) -> None:
        raise RuntimeError("before anything is there")


class UnfinishedOptimizer(torch.optim.Optimizer):
    def __init__(self) -> None:
        pass


class Secretive(nn.Module):
    """A module that tells nothing of its insides."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def named_modules(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no names")

    def children(self) -> Any:
        raise RuntimeError("no children")

    def named_parameters(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no parameters")

    def forward(self, x: Any) -> Any:
        return self.inner(x)


def parameters_of_a_step() -> tuple[str, ...]:
    net = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    with mtp.profile(record_shapes=True) as prof:
        net(torch.ones(2, 2)).sum().backward()
        optimizer.step()
    return prof.trace.parameters


def test_a_module_that_failed_before_it_was_made_leaves_the_other_parameters_their_names() -> None:
    with pytest.raises(RuntimeError, match="before anything") as raised:
        Unfinished()
    assert parameters_of_a_step() == ("Sequential.0.weight", "Sequential.0.bias")
    assert isinstance(raised.traceback[-1].locals["self"], Unfinished)  # kept alive by the traceback


def test_an_optimizer_without_groups_leaves_the_others_their_parameters() -> None:
    unfinished = UnfinishedOptimizer()
    assert parameters_of_a_step() == ("Sequential.0.weight", "Sequential.0.bias")
    assert not hasattr(unfinished, "param_groups")


def test_a_module_that_will_not_name_its_parameters_is_passed_over() -> None:
    secretive = Secretive()
    assert parameters_of_a_step() == ("Sequential.0.weight", "Sequential.0.bias")
    assert secretive.inner.weight.shape == (2, 2)


@pytest.mark.parametrize("hook", [NATIVE])
def test_a_module_that_will_not_name_its_modules_lends_its_class_name(hook: str) -> None:
    secretive, x = Secretive(), torch.ones(2, 2)
    expected = secretive(x)
    with mtp.profile(hook=hook, with_modules=True) as prof:
        found = secretive(x)
    assert torch.equal(found, expected)
    assert {event["module"] for event in prof.events() if event.name == "aten::addmm"} == {"Linear"}


def test_a_formula_that_cannot_be_given_the_inputs_leaves_the_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils import flop_counter

    monkeypatch.setitem(flop_counter.flop_registry, torch.ops.aten.cat, lambda *_, **__: 1)
    x = torch.ones(2, 2)
    with mtp.profile(with_flops=True) as prof:
        torch.cat([x, x])
        torch.mm(x, x)
    flops = {event.name: event.get("flops") for event in prof.events()}
    assert (flops["aten::cat"], flops["aten::mm"]) == (None, 16)
