"""Hook `dispatch`: the stack of an op, its own or that of the op whose gradient it computes."""

import sys
from typing import Any

import torch
from dispatch_recording import record, row_of
from torch.utils.checkpoint import checkpoint

from mtprof_nb.model.trace import Trace


def _stack(trace: Trace, row: int) -> list[tuple[int, str]]:
    """Lines and functions of the frames of this file, innermost first."""
    assert trace.stacks is not None
    assert trace.stack is not None
    return [
        (frame.line, frame.function) for frame in trace.stacks.stack(int(trace.stack[row])) if frame.file == __file__
    ]


def _line() -> int:
    return sys._getframe(1).f_lineno


def test_stacks_have_the_exact_line_of_calls_operators_and_multi_line_expressions() -> None:
    lines = {}

    def program() -> None:
        a = torch.rand(2, 2)
        lines["aten::mul"] = _line() + 1
        b = a * a
        lines["aten::cat"] = _line() + 2
        joined = {
            "joined": torch.cat([a, b]),
        }
        assert len(joined) == 1

    trace = record(program, with_stack=True)
    for name, line in lines.items():
        assert _stack(trace, row_of(trace, name))[0] == (line, "program")


def test_no_frame_of_the_profiler_or_of_torchs_dispatch_is_on_a_stack() -> None:
    def program() -> None:
        with torch.profiler.record_function("scope"):
            torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2))

    trace = record(program, with_stack=True)
    assert trace.stacks is not None
    files = {frame.file for frame in trace.stacks.frames}
    assert not [file for file in files if "mtprof_nb/" in file and "/tests/" not in file]
    assert not [
        file for file in files if file.endswith(("_python_dispatch.py", "torch/_ops.py", "autograd/profiler.py"))
    ]


def test_backward_ops_carry_the_forward_stack_and_say_so() -> None:
    weight = torch.rand(2, requires_grad=True)
    lines = {}

    def program() -> None:
        lines["forward"] = _line() + 1
        y = weight.exp()
        y.sum().backward()

    trace = record(program, with_stack=True)
    row = row_of(trace, "aten::mul", "backward")
    assert _stack(trace, row)[0] == (lines["forward"], "program")
    assert trace.stack_is_forward is not None
    assert trace.stack_is_forward[row]
    assert not trace.stack_is_forward[row_of(trace, "aten::exp")]


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


def test_a_backward_written_in_python_keeps_its_own_stack() -> None:
    x = torch.rand(2, requires_grad=True)
    trace = record(lambda: _Doubled.apply(x).sum().backward(), with_stack=True)

    row = row_of(trace, "aten::mul", "backward")
    assert _stack(trace, row)[0][1] == "backward"
    assert trace.stack_is_forward is not None
    assert not trace.stack_is_forward[row]
    assert trace.names[trace.name[trace.forward[row]]] == "aten::mul"


def test_what_a_checkpoint_computes_again_keeps_its_own_stack() -> None:
    x = torch.rand(2, requires_grad=True)

    def body(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    trace = record(lambda: checkpoint(body, x, use_reentrant=False).sum().backward(), with_stack=True)
    row = row_of(trace, "aten::exp", "backward")
    assert _stack(trace, row)[0][1] == "body"
    assert trace.stack_is_forward is not None
    assert not trace.stack_is_forward[row]
