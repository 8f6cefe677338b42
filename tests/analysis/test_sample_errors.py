"""Times that samples estimate and their errors, also of several processes, on samples made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from mtprof_nb.model.merge import merge
from mtprof_nb.model.records import AT_PLACE, LATER, MOVING, Samples
from mtprof_nb.model.trace import Frame, OutsideOps, Process, SourceLine, StackInterner, Trace, Track, empty_trace
from mtprof_nb.tables.function_table import FunctionRow, Functions
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.table import cell_text


def sampled(*certainty: int) -> Trace:
    """Samples every 100 ns, of `one` and `other` in turns, of this certainty."""
    interner = StackInterner()
    stacks = [interner.stack([Frame("f.py", line, name)]) for line, name in ((1, "one"), (2, "other"))]
    count = len(certainty)
    moments, nothing = np.arange(50, 100 * count, 100), np.zeros(count, np.int32)
    node = np.resize(np.array(stacks, np.int32), count)
    samples = Samples(moments, moments, nothing, node, nothing.astype(np.bool_), certainty=np.array(certainty, np.int8))
    tracks = (Track(1, "thread"),)
    return replace(empty_trace(), ended_ns=100 * count, tracks=tracks, samples=samples, stacks=interner.tree())


def rows(*certainty: int) -> dict[str, FunctionRow]:
    return {row.function: row for row in Functions(sampled(*certainty))}


def test_time_that_may_be_of_the_call_before_or_after_is_part_of_the_error() -> None:
    found = rows(AT_PLACE, AT_PLACE, MOVING, AT_PLACE)

    assert {name: row.own_ns for name, row in found.items()} == {"one": 200, "other": 200}
    assert found["one"].error_ns == round(2 * 100 * np.sqrt(3) + 100)
    assert found["other"].error_ns == round(2 * 100 * np.sqrt(3))


def test_no_error_is_told_of_samples_that_were_taken_later() -> None:
    found = rows(AT_PLACE, LATER)

    assert found["one"].error_ns == round(2 * 100 * np.sqrt(2))
    assert found["other"].error_ns is None


@pytest.mark.parametrize(("certainty", "error_ns"), [(AT_PLACE, 200), (LATER, None)])
def test_a_function_that_no_sample_found_may_have_run_as_long_as_one_stands_for(
    certainty: int, error_ns: int | None
) -> None:
    trace, interner = sampled(certainty), StackInterner()
    seen = interner.stack([Frame("f.py", 2, "outer"), Frame("f.py", 3, "inner")])
    assert trace.samples is not None
    samples = replace(trace.samples, stack=np.array([seen], np.int32))
    found = {row.function: row for row in Functions(replace(trace, samples=samples, stacks=interner.tree()))}

    assert (found["outer"].samples, found["outer"].own_ns, found["outer"].error_ns) == (0, 0, error_ns)
    assert found["inner"].samples == 1


def test_a_sample_close_to_others_is_no_reason_for_a_small_error() -> None:
    trace = sampled(AT_PLACE, AT_PLACE, AT_PLACE)
    assert trace.samples is not None
    close = np.array([100, 104, 108])  # of 300 ns, the sample of `other` stands for 4
    found = {
        row.function: row
        for row in Functions(replace(trace, samples=replace(trace.samples, time_ns=close, taken_ns=close)))
    }

    assert found["other"].own_ns == 4
    assert found["other"].error_ns == round(2 * np.sqrt(4**2 + 100**2))


@pytest.mark.parametrize("certainty", [AT_PLACE, LATER])
def test_the_table_shows_whether_an_error_is_known(certainty: int) -> None:
    text = Functions(sampled(certainty)).table()

    assert ("?" in text) == (certainty == LATER)


def of_rank(rank: int, count: int, began_ns: int) -> Trace:
    """The process of a rank, with so many samples."""
    trace = sampled(*[AT_PLACE] * count)
    assert trace.samples is not None
    moments, ended_ns = trace.samples.time_ns + began_ns, began_ns + 100 * count
    return replace(
        trace,
        samples=replace(trace.samples, time_ns=moments, taken_ns=moments),
        began_ns=began_ns,
        ended_ns=ended_ns,
        windows=((began_ns, ended_ns),),
        processes=(Process(100 + rank, rank, "host"),),
    )


@pytest.mark.parametrize("later_ns", [0, 50, 5_000], ids=["at once", "overlapping", "later"])
def test_functions_of_several_processes_have_the_time_of_all_of_them(later_ns: int) -> None:
    both = merge([of_rank(0, 2, 0), of_rank(1, 6, later_ns)])

    assert {row.function: row.own_ns for row in Functions(both)} == {"one": 100 + 300, "other": 100 + 300}


def test_lines_tell_the_error_of_their_time_as_functions_do() -> None:
    lines = {row.line: row for row in Lines(sampled(AT_PLACE, AT_PLACE, MOVING, AT_PLACE))}

    assert {line: row.outside_ns for line, row in lines.items()} == {1: 200, 2: 200}
    assert lines[1].outside_error_ns == round(2 * 100 * np.sqrt(3) + 100)
    assert lines[2].outside_error_ns == round(2 * 100 * np.sqrt(3))


def test_measured_lines_have_no_error_but_that_of_what_is_taken_from_them() -> None:
    interner, cell = StackInterner(), "<ipython-input-1>"
    measured, calling = Frame(cell, 1, "<module>"), Frame(cell, 2, "<module>")
    stacks = [interner.stack(frames) for frames in ([measured], [calling, Frame("f.py", 5, "f")])]
    trace = sampled(AT_PLACE, AT_PLACE)
    assert trace.samples is not None
    outside = {SourceLine(cell, 1): OutsideOps(100, 100), SourceLine(cell, 2): OutsideOps(100, 100)}
    samples = replace(trace.samples, stack=np.array(stacks, np.int32))
    sources = {cell: "one\ntwo\n", "f.py": "x\n" * 5}
    made = replace(trace, samples=samples, stacks=interner.tree(), outside=outside, sources=sources)

    found = {(row.file, row.line): (row.outside_ns, row.outside_error_ns) for row in Lines(made)}

    error_ns = round(2 * 100 * np.sqrt(2))
    assert found == {(cell, 1): (100, 0), (cell, 2): (0, error_ns), ("f.py", 5): (100, error_ns)}


@pytest.mark.parametrize("certainty", [AT_PLACE, LATER])
def test_the_table_of_lines_shows_errors(certainty: int) -> None:
    text, later = Lines(sampled(AT_PLACE, certainty)).table(), Lines(sampled(AT_PLACE, LATER)).to_dataframe()

    assert "+/-" in text
    assert ("?" in text) == (certainty == LATER)
    assert later["outside_error_ns"].isna().sum() == 1


def test_a_function_without_time_of_its_own_has_zeros_and_no_error() -> None:
    interner = StackInterner()
    stack = interner.stack([Frame("f.py", 1, "<module>"), Frame("f.py", 2, "load")])
    sample = Samples(*(np.array([value]) for value in (100, 100, 0, stack, False)))
    trace = replace(empty_trace(), ended_ns=1_000, tracks=(Track(1, "thread"),), stacks=interner.tree())
    content = Functions(replace(trace, samples=sample)).content()
    (caller,) = [row for row in content.rows if row[0] == "<module>"]

    shown = {column.title: cell_text(column, value) for column, value in zip(content.columns, caller, strict=True)}
    assert {title: shown[title] for title in ("Own", "+/-", "Ops", "Python", "Waiting", "Total")} == {
        **dict.fromkeys(("Own", "Ops", "Python", "Waiting"), "0 µs"),
        "+/-": "–",
        "Total": "~1.00 µs",
    }
