"""Ops of threads whose memory was not recorded: every view leaves the number out, and one note says so."""

from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.costs import averaged_costs
from mtprof_nb.analysis.memory.missing_memory import lacks_memory
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.model.trace import Recorded, Trace
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.operators.operator_rows import columns
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.strip import strip_of
from mtprof_nb.views.tabs.memory.memory_figure import memory
from mtprof_nb.views.tabs.memory.memory_tab import MemoryTab

NONE_AT_ALL = "Memory of other threads is not recorded, and the thread that profiles allocated none."
IN_PART = "Memory of other threads is not recorded: the peak is without it, and operators that ran there count as 0 B."


def recorded(events: list[dict[str, Any]], allocations: list[dict[str, Any]]) -> Trace:
    return make_trace(events, allocations, recorded=Recorded(profile_memory=True))


def on_other_thread(start_ns: int, end_ns: int, line: int = 2) -> dict[str, Any]:
    return event("add", start_ns, end_ns, thread=2, memory=(-1, -1), line=("a.py", line))


def on_this_thread(before: int, after: int, line: int = 1) -> dict[str, Any]:
    return event("mm", 0, 10, memory=(before, after), line=("a.py", line))


def titles(trace: Trace) -> list[str]:
    return [column.title for column in columns(trace)]


def test_nothing_is_shown_where_all_memory_was_other_threads() -> None:
    trace = recorded([on_other_thread(0, 10)], [])
    strip = strip_of(trace)
    assert peak_bytes(trace) is None
    assert "peak memory" not in strip.line
    assert strip.notes == (NONE_AT_ALL,)
    assert "Allocated" not in titles(trace)
    assert "Memory" not in titles(trace)
    assert [(row.memory_bytes, row.allocated_bytes) for row in Lines(trace)] == [(None, None)]
    assert NONE_AT_ALL in static.text(Scene(trace))
    assert " B" not in static.text(Scene(trace))
    assert MemoryTab(Scene(trace)).first() == {"empty": NONE_AT_ALL}
    with pytest.raises(ValueError, match=NONE_AT_ALL):
        memory(trace)


def test_the_peak_of_this_thread_is_shown_with_a_note_and_lines_of_others_are_empty() -> None:
    trace = recorded(
        [
            on_this_thread(0, 4096),
            on_other_thread(2, 8),
            on_other_thread(20, 30, line=1),
            on_other_thread(40, 50, line=3),
        ],
        [{"time_ns": 5, "nbytes": 4096, "address": 8, "event": 0, "total": 4096}],
    )
    assert lacks_memory(trace).tolist() == [False, True, True, True]
    assert peak_bytes(trace) == 4096
    assert strip_of(trace).notes == (IN_PART,)
    assert "Allocated" in titles(trace)
    found = averaged_costs(trace).memory
    assert found is not None
    assert found.cpu.tolist() == [4096, 0, 0, 0]
    assert {row.line: row.allocated_bytes for row in Lines(trace)} == {1: None, 2: None, 3: None}


def test_lines_of_this_thread_keep_their_bytes_beside_empty_ones() -> None:
    trace = recorded(
        [on_this_thread(0, 4096), on_other_thread(20, 30)],
        [{"time_ns": 5, "nbytes": 4096, "address": 8, "event": 0, "total": 4096}],
    )
    assert {row.line: (row.memory_bytes, row.allocated_bytes) for row in Lines(trace)} == {
        1: (4096, 4096),
        2: (None, None),
    }
    (of_others,) = (line for line in Lines(trace).table().splitlines() if line.startswith("a.py:2"))
    assert of_others.split()[-3:] == ["1", "–", "–"]
    assert "0 b" not in of_others


def test_a_thread_that_was_recorded_and_allocated_nothing_has_a_peak_of_zero() -> None:
    trace = recorded([on_this_thread(0, 0)], [])
    assert peak_bytes(trace) == 0
    assert strip_of(trace).notes == ()
    assert [row.allocated_bytes for row in Lines(trace)] == [0]
