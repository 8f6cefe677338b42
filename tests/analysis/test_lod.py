"""Level of detail: blocks hold every event and every nanosecond of their window, and are never longer than it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import training_run

from mtprof_nb.analysis.lanes import lanes
from mtprof_nb.analysis.lod import LIMIT, Levels


def levels(*rows: tuple[int, int, int]) -> Levels:
    """Of (row, start, end)."""
    row, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Levels(row.astype(np.int32), start, end - start)


def test_events_that_are_wider_than_a_pixel_are_blocks_of_their_own() -> None:
    blocks = levels((0, 0, 400), (1, 100, 200), (1, 250, 390)).window(0, 400, pixels=4)

    assert blocks.row.tolist() == [0, 1, 1]
    assert blocks.start_ns.tolist() == [0, 100, 250]
    assert blocks.end_ns.tolist() == [400, 200, 390]
    assert blocks.count.tolist() == [1, 1, 1]
    assert blocks.time_ns.tolist() == [400, 100, 140]
    assert blocks.event.tolist() == [0, 1, 2]


def test_neighbours_under_a_pixel_merge_and_say_how_many_they_are_and_how_long_they_ran() -> None:
    # 1,024 ns in 4 pixels: cells of 256 ns.
    blocks = levels((0, 0, 10), (0, 20, 50), (0, 200, 210), (0, 300, 700), (0, 900, 905)).window(0, 1_024, pixels=4)

    assert blocks.merged_below_ns == 256
    assert blocks.start_ns.tolist() == [0, 300, 900]
    assert blocks.end_ns.tolist() == [210, 700, 905]
    assert blocks.count.tolist() == [3, 1, 1]
    assert blocks.time_ns.tolist() == [50, 400, 5]
    assert blocks.event.tolist() == [1, 3, 4], "the longest of each block"


def test_events_of_different_rows_never_merge() -> None:
    blocks = levels((0, 0, 10), (1, 12, 14), (0, 20, 30)).window(0, 1_024, pixels=1)

    assert blocks.row.tolist() == [0, 1]
    assert blocks.count.tolist() == [2, 1]


def test_a_window_holds_what_touches_it_and_nothing_else() -> None:
    index = levels((0, 0, 100), (0, 100, 200), (0, 200, 300), (0, 300, 400))

    assert index.window(150, 250).event.tolist() == [1, 2]
    assert index.window(401, 500).event.tolist() == []
    # In one block with them, were it not for the window.
    assert index.window(150, 250, pixels=1, limit=1).count.tolist() == [2]


def test_a_window_inside_a_long_event_still_shows_it_with_its_true_extent() -> None:
    blocks = levels((0, 0, 1_000_000), (1, 10, 20)).window(500, 600)

    assert (blocks.start_ns.tolist(), blocks.end_ns.tolist()) == ([0], [1_000_000])


def test_the_grid_stands_still_when_the_window_moves() -> None:
    start = np.arange(0, 100_000, 7)
    index = Levels(np.zeros(len(start), np.int32), start, np.full(len(start), 3))
    first = index.window(10_000, 20_000, pixels=100)
    moved = index.window(10_640, 20_640, pixels=100)

    shared = set(first.start_ns.tolist()) & set(moved.start_ns.tolist())
    assert len(shared) > 0.9 * len(first) - 2


def test_an_event_without_a_row_is_not_drawn() -> None:
    assert levels((-1, 0, 100), (0, 0, 50)).window(0, 100).event.tolist() == [1]


def test_nothing_recorded_is_no_block() -> None:
    empty = np.empty(0, np.int64)

    assert len(Levels(empty.astype(np.int32), empty, empty).window(0, 1)) == 0


@pytest.mark.parametrize("zoom", [1, 3, 17, 400, 5_000])
def test_a_long_trace_has_at_most_two_thousand_blocks_in_any_window(zoom: int) -> None:
    trace = training_run(60_000)
    index = Levels(lanes(trace).row, trace.start_ns, trace.duration_ns)
    length = (trace.ended_ns - trace.began_ns) // zoom
    begin = trace.began_ns + length * (zoom // 2)

    blocks = index.window(begin, begin + length)

    inside = (trace.end_ns >= begin) & (trace.start_ns <= begin + length)
    assert 0 < len(blocks) <= LIMIT
    assert blocks.count.sum() == inside.sum()
    assert blocks.time_ns.sum() == trace.duration_ns[inside].sum()


def test_more_rows_than_the_limit_are_one_block_each() -> None:
    rows = [(row, 10 * at, 10 * at + 5) for row in range(30) for at in range(4)]

    assert len(levels(*rows).window(0, 100, limit=10)) == 30


def test_parts_divide_a_block_by_code_and_lose_neither_time_nor_events() -> None:
    index = levels((0, 0, 10), (0, 20, 50), (0, 60, 70), (0, 300, 700))
    blocks = index.window(0, 1_024, pixels=4)
    parts = index.parts(blocks, np.array([2, 1, 2, 0], np.int8), 3)

    assert parts.block.tolist() == [0, 0, 1]
    assert parts.code.tolist() == [1, 2, 0]
    assert parts.count.tolist() == [1, 2, 1]
    assert parts.time_ns.tolist() == [30, 20, 400]
    assert parts.event.tolist() == [1, 0, 3], "the longest of each part, the first of equal ones"
    assert parts.dominant(2).tolist() == [1, 0]


def test_a_block_says_how_many_chosen_events_it_holds() -> None:
    index = levels((0, 0, 10), (0, 20, 50), (0, 300, 700))
    blocks = index.window(0, 1_024, pixels=4)

    assert index.held(blocks, np.array([True, False, True])).tolist() == [1, 1]
    assert index.held(blocks, np.array([False, True, False])).tolist() == [1, 0]


@st.composite
def rows_of_intervals(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Rows in which neither starts nor ends ever go back."""
    found = []
    for row in range(draw(st.integers(1, 4))):
        now = 0
        for gap, length in draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2_000)), max_size=30)):
            found.append((row, now + gap, now + gap + length))
            now += gap + length
    return found or [(0, 0, 1)]


@given(rows_of_intervals(), st.integers(0, 20_000), st.integers(1, 30_000), st.integers(1, 50), st.integers(1, 2_000))
def test_whatever_the_window_nothing_is_lost_and_nothing_is_widened(
    rows: list[tuple[int, int, int]], begin: int, length: int, limit: int, pixels: int
) -> None:
    index = levels(*rows)
    blocks = index.window(begin, begin + length, limit, pixels)
    touching = [event for event, (_, start, end) in enumerate(rows) if end >= begin and start <= begin + length]

    assert len(blocks) <= max(limit, 4)
    assert blocks.count.sum() == len(touching)
    held = [index.events[first:last].tolist() for first, last in zip(blocks.first, blocks.last, strict=True)]
    assert sorted(event for events in held for event in events) == touching
    for block, events in enumerate(held):
        members = [rows[event] for event in events]
        assert blocks.start_ns[block] == min(start for _, start, _ in members)
        assert blocks.end_ns[block] == max(end for _, _, end in members)
        assert blocks.time_ns[block] == sum(end - start for _, start, end in members)
        assert {row for row, _, _ in members} == {blocks.row[block]}
