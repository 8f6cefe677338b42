"""Names of modules that are gone when the recording ends: by their classes and by who called them."""

import pytest

import mtprof_nb as mtp
from mtprof_nb.building.called_modules import CalledModule
from mtprof_nb.capture.living_objects import paths_of_modules

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def test_modules_that_are_gone_are_named_by_their_callers_and_told_apart_where_alike() -> None:
    kept = nn.Sequential(nn.Linear(2, 2))
    called = [
        CalledModule(1, "Net", -1),
        CalledModule(2, "Linear", 0),
        CalledModule(3, "Sequential", 0),
        CalledModule(id(kept), "Sequential", -1),
        CalledModule(4, "Linear", 2),
        CalledModule(5, "ReLU", 2),
        CalledModule(6, "Linear", 2),
        CalledModule(id(kept[0]), "Linear", 3),
    ]

    assert paths_of_modules(called) == [
        "Net",
        "Net.Linear",
        "Net.Sequential",
        "Sequential",
        "Net.Sequential.Linear_0",
        "Net.Sequential.ReLU",
        "Net.Sequential.Linear_1",
        "Sequential.0",
    ]


def test_layers_of_a_model_that_no_longer_exists_are_told_apart() -> None:
    def work() -> None:
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        model(torch.ones(5, 4)).sum().backward()

    with mtp.profile(with_modules=True, hook="kineto") as prof:
        work()
    modules = [event.get("module") for event in prof.events() if event.name in ("aten::addmm", "aten::relu")]
    assert modules == ["Sequential.Linear_0", "Sequential.ReLU", "Sequential.Linear_1"]
    nodes = [event.get("module") for event in prof.events() if event.name == "AddmmBackward0"]
    assert nodes == ["Sequential.Linear_1", "Sequential.Linear_0"]
