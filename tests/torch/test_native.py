"""Hook `native`: what it alone can do, and what it must never do to a program."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from recorded_rows import names
from recording import EVERY_FLAG, NATIVE
from torch.utils._pytree import tree_map

import mtprof_nb as mtp
from mtprof_nb.errors import MtprofWarning

pytestmark = pytest.mark.parametrize("hook", [NATIVE])


class Wrapper(torch.Tensor):
    """Tells its sizes, strides, layout and device in Python, and computes with tensors there."""

    calls: list[str] = []  # noqa: RUF012

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        options = {"dispatch_sizes_strides_policy": "sizes", "dispatch_device": True, "dispatch_layout": True}
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, **options)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(str(func))
        torch.ones(3).add(1)
        args, kwargs = tree_map(lambda one: one.inner if isinstance(one, cls) else one, (args, kwargs or {}))
        return func(*args, **kwargs)


def test_a_subclass_that_tells_its_sizes_in_python_is_not_asked(hook: str) -> None:
    x = Wrapper(torch.ones(2, 3))
    torch.sin(x)
    plain = Wrapper.calls[:]
    Wrapper.calls.clear()
    with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        torch.sin(x)
    assert Wrapper.calls == plain
    assert prof.events()[0].input_shapes == [[2, 3]]


def limited(hook: str, most: int, program: Callable[[], Any], **flags: bool) -> mtp.profile:
    """Record `program`, which runs more than `most` events."""
    prof = mtp.profile(hook=hook, max_events=most, **flags)
    with prof, warnings.catch_warnings():
        program()
        warnings.simplefilter("ignore", MtprofWarning)
        prof.stop()
    return prof


@pytest.mark.parametrize("most", [1, 63, 64, 65, 1000])
def test_max_events_is_exact_on_one_thread_and_the_first_are_kept(hook: str, most: int) -> None:
    x = torch.ones(2)

    def run() -> None:
        for number in range(1500):
            x.neg() if number < most else x.exp()

    trace = limited(hook, most, run, **EVERY_FLAG).trace
    assert names(trace) == ["aten::neg"] * most
    assert trace.dropped == 1500 - most
    assert (trace.allocations.nbytes > 0).sum() == most


def test_max_events_is_exact_on_several_threads(hook: str) -> None:
    x = torch.ones(2)

    def run(count: int) -> None:
        for _ in range(count):
            x.neg()

    def run_threads() -> None:
        threads = [threading.Thread(target=run, args=(count,)) for count in (10, 700, 700, 700, 700)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    trace = limited(hook, 2_500, run_threads).trace
    assert (len(trace), trace.dropped) == (2_500, 310)


def test_as_many_events_as_max_events_are_all_kept(hook: str) -> None:
    x = torch.ones(2)
    with mtp.profile(hook=hook, max_events=640) as prof:
        for _ in range(640):
            x.neg()
    assert (len(prof.trace), prof.trace.dropped) == (640, 0)
