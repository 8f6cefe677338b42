"""FLOPs of one program by both hooks of PyTorch, and by torch's own profiler."""

from collections.abc import Callable
from typing import Any

import pytest
from recording import HOOKS, NATIVE

import mtprof_nb as mtp

torch = pytest.importorskip("torch")


def products() -> None:
    a, b = torch.rand(2, 3), torch.rand(3, 4)
    (a @ b).sum()


def sums_and_scalings() -> None:
    x, row, one = torch.rand(5, 3), torch.rand(3), torch.tensor(2.0)
    x + row
    row + x
    x * 2
    one * x
    one + one
    torch.add(x, x, alpha=2)
    torch.mul(x, x, out=torch.empty(5, 3))
    torch.arange(4) + 1
    x.add_(1)
    x.mul_(2)
    x - row


def convolutions() -> None:
    image = torch.rand(2, 3, 8, 8)
    torch.nn.functional.conv2d(image, torch.rand(4, 3, 3, 3)) + 1


def training() -> None:
    w, x = torch.rand(3, 2, requires_grad=True), torch.rand(4, 3)
    (x.mm(w) * 3 + 1).sum().backward()


def by_name(rows: Any) -> dict[str, int]:
    return {row.key: row.flops for row in rows if row.flops}


@pytest.mark.parametrize("program", [products, sums_and_scalings, convolutions, training])
@pytest.mark.parametrize("hook", [NATIVE])
def test_both_hooks_count_the_same_operations(program: Callable[[], None], hook: str) -> None:
    counted = []
    for one in ("kineto", hook):
        with mtp.profile(hook=one, with_flops=True) as prof:
            program()
        counted.append(by_name(prof.key_averages()))
    assert counted[0] == counted[1]


@HOOKS
def test_additions_and_multiplications_are_counted_as_by_torchs_own_profiler(hook: str) -> None:
    with torch.profiler.profile(with_flops=True) as theirs:
        sums_and_scalings()
    with mtp.profile(hook=hook, with_flops=True) as ours:
        sums_and_scalings()
    expected = {"aten::add": 15 + 3 + 1 + 15 + 4, "aten::mul": 15 + 1 + 15}

    assert by_name(theirs.key_averages()) == expected
    assert by_name(ours.key_averages()) == expected
