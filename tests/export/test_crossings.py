"""Which intervals cross others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mtprof_nb.export.chrome_events import crosses

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


def _columns(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    columns = np.array(spans, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


@given(SPANS, SPANS)
def test_an_interval_crosses_another_if_each_has_one_end_outside_of_the_other(
    spans: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    expected = [
        any(start < first < end < last or first < start < last < end for first, last in others) for start, end in spans
    ]

    assert crosses(*_columns(spans), *_columns(others)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)).map(sorted).map(tuple), max_size=60))
def test_long_ranges_of_other_intervals_are_seen_whole(spans: list[tuple[int, int]]) -> None:
    expected = [any(a < first < b < last or first < a < last < b for first, last in spans) for a, b in spans]

    assert crosses(*_columns(spans), *_columns(spans)).tolist() == expected
