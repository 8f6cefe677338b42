"""Lines of compiled programs: the user's own, never those of code that torch generated."""

from typing import Any

import pytest
from recording import HOOKS

import mtprof_nb as mtp

torch = pytest.importorskip("torch")


def loss_of(x):
    y = torch.sin(x) + 1
    return (y * x).sum()


def compiled_before() -> tuple[Any, Any]:
    """`loss_of`, compiled and run once, and its input."""
    torch._dynamo.reset()
    compiled = torch.compile(loss_of, backend="aot_eager")
    x = torch.randn(16, 16, requires_grad=True)
    compiled(x).backward()
    return compiled, x


@HOOKS
def test_every_line_of_a_compiled_program_is_the_users(hook: str) -> None:
    compiled, x = compiled_before()
    with mtp.profile(with_stack=True, hook=hook) as prof:
        compiled(x).backward()

    found = prof.lines()

    assert {row.file for row in found if row.count} == {__file__}
    assert sum(row.count for row in found) > 0


@HOOKS
def test_the_backward_of_a_compiled_function_is_on_its_line(hook: str) -> None:
    compiled, x = compiled_before()
    with mtp.profile(with_stack=True, hook=hook) as prof:
        loss = compiled(x)
        loss.backward()

    lines = prof.lines()
    found = {op.name: row.line for row in lines for op in lines.ops(row)}

    assert found["aten::sin"] == found["aten::cos"] == loss_of.__code__.co_firstlineno
