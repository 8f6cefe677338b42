"""A kernel of a real recording with stacks: it has the stack of its op, though it ran later."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kineto_made_by_hand import ACCESSORS, Event

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import kineto_hook
from mtprof_nb.model.trace import KERNEL, Trace

torch = pytest.importorskip("torch")


def with_a_kernel_of_mm(results: Any, _torch: Any, request: Any, noted: Any) -> Trace:
    """The trace of a recording on the CPU, as if `aten::mm` had launched a kernel that runs during `aten::relu`."""
    events = results.events()
    mm, relu = (next(event for event in events if event.name() == name) for name in ("aten::mm", "aten::relu"))
    kernel = Event(
        name="gemm",
        activity_type="kernel",
        device_type=SimpleNamespace(name="CUDA"),
        linked_correlation_id=mm.correlation_id(),
        start_thread_id=mm.start_thread_id(),
        start_ns=relu.start_ns(),
        duration_ns=1,
        sequence_nr=-1,
        extra_meta={},
        device_resource_id=7,
    )
    of_device = SimpleNamespace(
        events=lambda: [*events, kernel],
        trace_start_ns=results.trace_start_ns,
        experimental_event_tree=results.experimental_event_tree,
    )
    c = SimpleNamespace(
        _autograd=SimpleNamespace(_KinetoEvent=ACCESSORS), _get_privateuse1_backend_name=lambda: "privateuseone"
    )
    return build_trace(of_device, SimpleNamespace(_C=c), replace(request, activities=frozenset({"CPU", "CUDA"})), noted)


build_trace = kineto_hook.build_trace


def test_a_kernel_has_the_stack_and_the_line_of_the_op_that_launched_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def product(x: Any) -> Any:
        return torch.mm(x, x)

    def rest(x: Any) -> Any:
        return torch.relu(x)

    monkeypatch.setattr(kineto_hook, "build_trace", with_a_kernel_of_mm)
    with mtp.profile(with_stack=True, hook="kineto") as prof:
        rest(product(torch.ones(4, 4)))

    stacks = {event.name: event.stack for event in prof.events() if event.name in ("aten::mm", "aten::relu", "gemm")}
    assert stacks["aten::mm"][0].endswith(":product")
    assert stacks["gemm"] == stacks["aten::mm"] != stacks["aten::relu"]
    assert prof.trace.tracks[prof.trace.track[prof.trace.kind == KERNEL].item()].device == "CUDA:0"
    assert [row.source for row in prof.lines() if row.device_ns] == ["return torch.mm(x, x)"]
