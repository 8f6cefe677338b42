"""Texts that would make a file grow beyond its events: deep stacks and long names are cut, and say so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.export import chrome_trace, collapsed_stacks, recording_file
from mtprof_nb.export.cut_texts import CutStacks
from mtprof_nb.model.trace import Frame, StackInterner, Trace


def recursion(depth: int) -> Trace:
    """An op on each level of a function that calls itself; the line is the level."""
    interner, node, stack = StackInterner(), -1, []
    for level in range(1, depth + 1):
        node = interner.child(node, Frame("run.py", level, "f"))
        stack.append(node)
    trace = make_trace([event("aten::mm", 10_000 * at, 10_000 * at + 4_000) for at in range(depth)])
    return replace(trace, stack=np.array(stack, np.int32), stacks=interner.tree())


def frames(depth: int) -> list[str]:
    cut = CutStacks(recursion(depth).stacks, str.upper)
    return cut.frames(depth - 1)


@pytest.mark.parametrize("depth", [1, 25, 26, 76, 100])
def test_a_stack_of_up_to_a_hundred_frames_is_whole(depth: int) -> None:
    assert frames(depth) == [f"RUN.PY:{level}:F" for level in range(depth, 0, -1)]


@pytest.mark.parametrize("depth", [101, 102, 3_000])
def test_of_a_deeper_stack_both_ends_are_written_and_the_number_of_frames_between(depth: int) -> None:
    inner = [f"RUN.PY:{level}:F" for level in range(depth, depth - 75, -1)]
    outer = [f"RUN.PY:{level}:F" for level in range(25, 0, -1)]

    assert frames(depth) == [*inner, f"<CUT>:{depth - 100}:MORE FRAMES", *outer]


@pytest.mark.parametrize("write", [chrome_trace.write, collapsed_stacks.write])
def test_a_file_grows_with_the_number_of_events_and_not_with_their_depth(write, tmp_path: Path) -> None:
    sizes = []
    for depth in (1_000, 2_000):
        write(recursion(depth), tmp_path / "file")
        sizes.append((tmp_path / "file").stat().st_size)

    # Beyond the first hundred levels, each event has the same length but for digits of its line.
    assert sizes[1] / sizes[0] < 2.3


def test_a_cut_stack_is_loaded_as_it_is_written(tmp_path: Path) -> None:
    trace = recursion(300)
    chrome_trace.write(trace, tmp_path / "deep.json")
    recording = mtp.load(tmp_path / "deep.json")

    assert recording.trace.stacks.stack(recording.trace.stack[299])[75] == Frame("<cut>", 200, "more frames")
    lines = [(row.line, row.self_ns) for row in recording.lines() if row.file]
    assert sorted(lines) == [(level, 4_000) for level in range(1, 301)]
    # Saved, the stacks are whole.
    recording_file.write(trace, tmp_path / "deep.mtp")
    saved = mtp.load(tmp_path / "deep.mtp")
    assert len(saved.trace.stacks.stack(saved.trace.stack[299])) == 300


def test_a_long_name_of_many_events_is_cut_and_ends_with_its_length(tmp_path: Path) -> None:
    name = "n" * 1_000_000
    for count, length in ((64, 1_000_000), (80, 800_000)):
        rows = [event(name, 10 * at, 10 * at + 5) for at in range(count)]
        chrome_trace.write(make_trace(rows), tmp_path / "names.json")
        recording = mtp.load(tmp_path / "names.json")

        cut = "" if count == 64 else "… (1,000,000 characters)"
        assert recording.trace.names == (name[:length] + cut,)
