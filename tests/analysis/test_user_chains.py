"""Chains of user lines from stacks and marks: equal to what a plain merge gives, in a time that is linear in depth."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.analysis.lines.user_lines import Chains, chains_of_events
from mtprof_nb.model.stack_tree import ChainInterner, has_above
from mtprof_nb.model.trace import Frame, SourceLine, StackInterner, Trace

#: Functions of the user's and of a library, with lines.
FILES = st.sampled_from(["run.py", "net.py", "/usr/lib/python3.11/abc.py"])
FRAMES = st.builds(Frame, FILES, st.integers(1, 3), st.sampled_from("fgh"))
MARKS = st.builds(Frame, st.sampled_from(["run.py", "net.py"]), st.integers(4, 6), st.sampled_from("fgh"))


def merged(stack: list[Frame], marks: list[Frame]) -> list[Frame]:
    """A stack and marks as one chain, innermost first: the rule itself, without regard to time."""
    if not stack or not marks:
        return stack or marks
    joined: list[Frame] = []
    left = list(marks)
    for frame in stack:
        position = next((index for index, mark in enumerate(left) if mark[::2] == frame[::2]), None)
        if position is None:
            joined.append(frame)
            continue
        joined += left[: position + 1] if not joined else [left[position]]
        del left[: position + 1]
    return joined


def recorded(pairs: list[tuple[list[Frame], list[Frame]]]) -> Trace:
    """A trace with a stack and marks for each event, innermost first."""
    stacks, marks = StackInterner(), StackInterner()
    stack = [stacks.stack(reversed(one)) for one, _ in pairs]
    marked = [marks.stack(reversed(one)) for _, one in pairs]
    trace = make_trace([event("aten::mm", 10 * at, 10 * at + 4) for at in range(len(pairs))])
    return replace(
        trace,
        stack=np.array(stack, np.int32),
        stacks=stacks.tree(),
        line_stack=np.array(marked, np.int32),
        line_stacks=marks.tree(),
    )


@given(st.lists(st.tuples(st.lists(FRAMES, max_size=7), st.lists(MARKS, max_size=5)), min_size=1, max_size=12))
def test_a_chain_is_the_merge_of_stack_and_marks(pairs: list[tuple[list[Frame], list[Frame]]]) -> None:
    trace, chains = recorded(pairs), Chains()
    found = chains_of_events(trace, chains).tolist()

    expected = [merged([frame for frame in stack if not frame.file.startswith("/")], marks) for stack, marks in pairs]
    told = [[chains.lines[line] for line in chains.innermost_first(node)] for node in found]
    assert told == [[SourceLine(*frame[:2]) for frame in chain] for chain in expected]


@given(st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 4)), max_size=30))
def test_an_item_above_is_found_as_by_walking(rows: list[tuple[int, int]]) -> None:
    parents = [min(parent, node - 1) for node, (parent, _) in enumerate(rows)]
    items = [item for _, item in rows]

    def above(node: int) -> list[int]:
        return [] if parents[node] < 0 else [items[parents[node]], *above(parents[node])]

    assert has_above(parents, items) == [items[node] in above(node) for node in range(len(rows))]


@pytest.mark.parametrize("marked", [False, True])
def test_recursion_takes_steps_in_proportion_to_its_depth(marked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level calls an op: the stacks together have the square of the depth in frames."""
    steps: Counter[str] = Counter()
    child = ChainInterner.child
    monkeypatch.setattr(ChainInterner, "child", lambda *given: steps.update(child=1) or child(*given))

    def count(depth: int) -> int:
        stacks, marks, node, mark = StackInterner(), StackInterner(), -1, -1
        stack, marked_at = [], []
        for _ in range(depth):
            node, mark = stacks.child(node, Frame("run.py", 2, "f")), marks.child(mark, Frame("run.py", 3, "f"))
            stack.append(node)
            marked_at.append(mark)
        trace = make_trace([event("aten::mm", 10 * at, 10 * at + 4) for at in range(depth)])
        trace = replace(trace, stack=np.array(stack, np.int32), stacks=stacks.tree())
        if marked:
            trace = replace(trace, line_stack=np.array(marked_at, np.int32), line_stacks=marks.tree())
        steps.clear()
        chains = attribution(trace).chains
        assert [len(chains.innermost_first(at)) for at in (0, depth - 1)] == [1, depth]
        costs = line_costs(trace)
        assert costs.total_ns.tolist() == [4 * depth, 0]
        assert [line.line for line in costs.lines] == [3 if marked else 2]
        return steps["child"]

    assert [count(depth) <= 2 * depth for depth in (100, 2_000)] == [True, True]
