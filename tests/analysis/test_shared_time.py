"""Fused kernels: how the time of one event is divided among lines."""

from dataclasses import replace

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.lines.line_costs import line_costs, ops_of_line
from mtprof_nb.building.compiled_lines import BrokenFunctions, Share, with_user_frames
from mtprof_nb.model.trace import Frame, SourceLine, Trace
from mtprof_nb.tables.line_table import Lines

WRAPPER = "/tmp" + "/torchinductor_me/ab/cabc.py"
SHARES = [
    Share((Frame("net.py", 5, "f"),), 600, "exp"),
    Share((Frame("net.py", 6, "f"),), 300, "mul 3 times"),
    Share((Frame("other.py", 7, "g"),), 100, "add"),
]


def fused(*weights: int) -> Trace:
    """Two calls of a fused kernel, and an op of one of its lines."""
    stack = [(WRAPPER, 3, "call"), ("net.py", 4, "f"), ("train.py", 9, "<module>")]
    trace = make_trace(
        [
            event("cpp_fused_0", 0, 1001, stack=stack),
            event("cpp_fused_0", 2000, 2007, stack=stack, phase="backward"),
            event("mm", 3000, 3050, stack=[(WRAPPER, 4, "call"), *stack[1:]]),
        ]
    )
    shares = [share._replace(weight=weight) for share, weight in zip(SHARES, weights, strict=True)]
    explained = {(WRAPPER, 3): shares, (WRAPPER, 4): [SHARES[1]._replace(ops="mm")]}
    return with_user_frames(trace, explained, BrokenFunctions(lambda _: "", lambda _, line: line))


@pytest.mark.parametrize("weights", [(600, 300, 100), (1 << 50, 7, 3), (1, 1, 1)])
def test_the_time_of_a_kernel_is_divided_among_its_lines_exactly(weights: tuple[int, ...]) -> None:
    costs = line_costs(fused(*weights))

    assert costs.forward_ns.sum() == 1001 + 50
    assert costs.backward_ns.sum() == 7
    assert costs.count.sum() == 3


def test_the_shares_of_lines_are_in_proportion_to_their_weights() -> None:
    costs = line_costs(fused(600, 300, 100))

    found = {line.line: int(ns) for line, ns in zip(costs.lines, costs.forward_ns, strict=False)}
    assert found == {9: 0, 5: 600, 6: 300 + 50, 7: 101}
    totals = {line.line: int(ns) for line, ns in zip(costs.lines, costs.total_ns, strict=False)}
    assert totals[9] == 1001 + 50  # the backward pass has no forward op, and so no caller


def test_the_ops_of_a_line_have_its_share_of_kernels() -> None:
    trace = fused(600, 300, 100)

    ops = ops_of_line(trace, SourceLine("net.py", 6))
    assert [(op.name, op.count, op.self_ns, op.fused) for op in ops] == [
        ("cpp_fused_0", 1, 300, "mul 3 times"),
        ("mm", 1, 50, ""),
        ("cpp_fused_0", 1, 2, "mul 3 times"),
    ]


def test_a_line_names_those_with_which_it_is_fused() -> None:
    lines = Lines(fused(600, 300, 100))

    assert {row.line: row.fused_with for row in lines} == {
        9: "",
        5: "6, other.py:7",
        6: "5, other.py:7",
        7: "net.py:5, net.py:6",
    }
    assert "≈ 6, other.py:7" in str(lines)


def test_without_compiled_code_nothing_is_shared() -> None:
    trace = replace(fused(600, 300, 100), compiled=None)

    assert {row.fused_with for row in Lines(trace)} == {""}
    assert "Fused with" not in str(Lines(trace))
