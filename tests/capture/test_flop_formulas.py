"""Operations from shapes alone, with numbers worked out by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from mtprof_nb.capture.flops import flops_of


def _tensor(*shape: int) -> Any:
    return SimpleNamespace(shape=shape)


@pytest.mark.parametrize(
    ("name", "args", "flops"),
    [
        ("mm", [_tensor(2, 3), _tensor(3, 4)], 2 * 2 * 3 * 4),
        ("matmul", [_tensor(3), _tensor(3)], 2 * 3),
        ("matmul", [_tensor(2, 3), _tensor(3)], 2 * 2 * 3),
        ("matmul", [_tensor(5, 1, 2, 3), _tensor(7, 3, 4)], 2 * 5 * 7 * 2 * 3 * 4),
        ("bmm", [_tensor(5, 2, 3), _tensor(5, 3, 4)], 2 * 5 * 2 * 3 * 4),
        ("addmm", [_tensor(4), _tensor(2, 3), _tensor(3, 4)], 2 * 2 * 3 * 4),
        ("baddbmm", [_tensor(5, 2, 4), _tensor(5, 2, 3), _tensor(5, 3, 4)], 2 * 5 * 2 * 3 * 4),
        ("conv2d", [_tensor(1, 3, 8, 8), _tensor(4, 3, 3, 3), None], 2 * 4 * 6 * 6 * 3 * 3 * 3),
        ("conv2d", [_tensor(2, 3, 8, 8), _tensor(4, 3, 3, 3), None, 2, 1], 2 * 2 * 4 * 4 * 4 * 3 * 3 * 3),
        ("conv2d", [_tensor(1, 4, 8, 8), _tensor(4, 1, 3, 3), None, (1, 1), (1, 1), (1, 1), 4], 2 * 4 * 8 * 8 * 9),
        ("conv1d", [_tensor(3, 10), _tensor(4, 3, 3), None, 1, 0, 2], 2 * 4 * 6 * 3 * 3),
    ],
)
def test_operations_are_two_for_each_multiplication_that_is_added_up(name: str, args: list[Any], flops: int) -> None:
    assert flops_of(name, args) == flops


@pytest.mark.parametrize(("first", "flops"), [(_tensor(2, 3), 6), (_tensor(), 1), (_tensor(0, 3), 0)])
@pytest.mark.parametrize("name", ["add", "mul"])
def test_an_addition_or_multiplication_is_one_operation_for_each_element_of_the_first(
    name: str, first: Any, flops: int
) -> None:
    assert flops_of(name, [first, _tensor(5, 2, 3)]) == flops


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("relu", [_tensor(2, 3)]),
        ("mm", []),
        ("mm", [1.0, 2.0]),
        ("conv2d", [_tensor(1, 3, 8, 8), _tensor(4, 3, 3, 3), None, 0]),
        ("conv2d", [_tensor(1, 3, 8, 8), _tensor(4, 3, 3, 3), None, 1, "same"]),
    ],
)
def test_where_no_formula_fits_there_is_no_number(name: str, args: list[Any]) -> None:
    assert flops_of(name, args) == -1
