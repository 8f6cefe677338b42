"""Whoever writes `mtprof_nb` for `torch.profiler` passes the same arguments, by position or by name."""

import inspect
import warnings
from typing import Any

import pytest

import mtprof_nb as mtp
from mtprof_nb.tables.averages import EventList
from mtprof_nb.tables.events import Events

torch = pytest.importorskip("torch")
profiler_util = pytest.importorskip("torch.autograd.profiler_util")

FUNCTIONS = ["schedule", "tensorboard_trace_handler", "supported_activities", "record_function"]
#: Those of `list`, and of building one, are not meant.
LIST_METHODS = [
    "table",
    "supported_export_stacks_metrics",
    "key_averages",
    "total_average",
    "export_chrome_trace",
    "export_stacks",
]


def _methods(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]


def _takes_all_of(ours: Any, torchs: Any) -> bool:
    expected = inspect.signature(torchs).parameters
    given = inspect.signature(ours)
    in_order = [name for name, one in expected.items() if one.kind is not one.KEYWORD_ONLY]
    others = [name for name in expected if name not in in_order]
    bound = given.bind(*in_order, **{name: name for name in others})
    return all(value == name for name, value in bound.arguments.items()) and all(
        one.default in (given.parameters[name].default, one.empty) for name, one in expected.items()
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_what_torchs_takes(name: str) -> None:
    assert _takes_all_of(getattr(mtp, name), getattr(torch.profiler, name))


@pytest.mark.parametrize("name", ["__init__", *_methods(torch.profiler.profile)])
def test_a_method_takes_what_torchs_takes(name: str) -> None:
    assert _takes_all_of(getattr(mtp.profile, name), getattr(torch.profiler.profile, name))


@pytest.mark.parametrize("name", torch.profiler.__all__)
def test_every_public_name_of_torch_profiler_is_here(name: str) -> None:
    assert getattr(mtp, name) is not None


def test_a_name_that_this_torch_does_not_have_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.profiler, "kineto_available")
    monkeypatch.delitem(vars(mtp), "kineto_available", raising=False)
    with pytest.raises(AttributeError, match=r"kineto_available is torch\.profiler's, .*: upgrade PyTorch"):
        mtp.kineto_available  # noqa: B018


def test_an_event_has_every_attribute_of_torchs_that_can_be_read() -> None:
    with mtp.profile(hook="kineto") as ours:
        torch.ones(3)
    torchs = profiler_util.FunctionEvent(id=0, name="aten::ones", thread=1, start_us=0, end_us=1)
    changes_it = {"append_cpu_child", "append_kernel", "set_cpu_parent"}
    wanted = {name for name in dir(torchs) if not name.startswith("_")} - changes_it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert [name for name in sorted(wanted) if not hasattr(ours.events()[0], name)] == []
    assert ours.profiler.function_events == ours.events()


def test_what_torch_puts_off_is_done_here() -> None:
    prof = mtp.profile()
    prof.wait_for_exports()
    assert prof.take_pending_cuspy_export() is None


@pytest.mark.parametrize("kind", [EventList, Events])
@pytest.mark.parametrize("name", LIST_METHODS)
def test_a_list_of_events_takes_what_torchs_takes(kind: type, name: str) -> None:
    assert _takes_all_of(getattr(kind, name), getattr(profiler_util.EventList, name))
