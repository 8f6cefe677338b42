"""Numbers as text of one width a column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtprof_nb.export.fixed_width import beside, choice, constant, integers, microseconds, row_texts, signed_integers

NUMBERS = st.one_of(st.integers(0, 20_000), st.integers(0, 2**32 + 5), st.integers(0, 2**63 - 1))


def _texts(*columns: np.ndarray) -> list[str]:
    count = max(len(column) for column in columns if column.ndim == 2)
    return [text.decode() for text in row_texts(beside(count, *columns))]


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_digits_are_those_of_str(values: list[int]) -> None:
    assert [text.strip() for text in _texts(integers(np.array(values, np.int64)))] == [str(value) for value in values]


@given(st.lists(st.tuples(NUMBERS, st.booleans()), min_size=1, max_size=30))
def test_what_is_absent_is_blank(pairs: list[tuple[int, bool]]) -> None:
    values, absent = np.array([pair[0] for pair in pairs], np.int64), np.array([pair[1] for pair in pairs])

    expected = ["" if gone else str(value) for value, gone in pairs]
    assert [text.strip() for text in _texts(integers(values, absent))] == expected


@given(st.lists(st.tuples(NUMBERS, st.sampled_from([1, -1]), st.booleans()), min_size=1, max_size=30))
def test_a_minus_stands_right_before_the_digits(triples: list[tuple[int, int, bool]]) -> None:
    values = np.array([value * sign for value, sign, _ in triples], np.int64)
    absent = np.array([gone for _, _, gone in triples])

    assert [text.strip() for text in _texts(signed_integers(values))] == [str(value) for value in values.tolist()]
    expected = ["" if gone else str(value) for value, gone in zip(values.tolist(), absent, strict=True)]
    assert [text.strip() for text in _texts(signed_integers(values, absent))] == expected


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_microseconds_keep_every_nanosecond(values: list[int]) -> None:
    expected = [f"{value // 1000}.{value % 1000:03d}" for value in values]
    assert [text.strip() for text in _texts(*microseconds(np.array(values, np.int64)))] == expected


@pytest.mark.parametrize("value", [0, 9, 9_999, 10_000, 99_999_999, 100_000_000, 2**32 - 1, 2**32, 2**63 - 1])
def test_numbers_at_the_edges_of_words_are_right(value: int) -> None:
    assert _texts(integers(np.array([value, 0, 7], np.int64)))[0].strip() == str(value)


def test_columns_stand_side_by_side() -> None:
    rows = _texts(constant('"a":'), integers(np.array([5, 12_345])), choice([",x", ",long"], np.array([1, -1])))

    assert rows == ['"a":       5,long   ', '"a":   12345        ']


def test_no_rows_are_no_text() -> None:
    assert row_texts(beside(0, constant("a"), integers(np.empty(0, np.int64)))) == []
