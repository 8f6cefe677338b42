"""Cost per line of real programs, held against what their ops tell without any line."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from lines_of_cells import CUSTOM_FUNCTION, checkpointed, costs_of_lines, lines_by_op, profile_cell
from marked_cells import Shell
from recording import NATIVE

from mtprof_nb.analysis.costs import in_ops_ns
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.trace import BACKWARD, FORWARD, OP, Trace
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE
from mtprof_nb.tables.line_table import Lines

torch = pytest.importorskip("torch")

ACCUMULATE = "torch::autograd::AccumulateGrad"


@dataclass
class Truth:
    """The ops of a program: outermost ops by name, in order where a name is not enough."""

    #: Name of a forward op, or of an autograd node, to its line.
    lines: dict[str, int]
    #: Lines of the `AccumulateGrad` events, in order.
    accumulate: list[int] = field(default_factory=list)

    def costs(self, trace: Trace) -> dict[tuple[int, int], int]:
        """Nanoseconds by line and phase: an outermost op takes what it and all inside it took."""
        found: dict[tuple[int, int], int] = {}
        accumulate = iter(self.accumulate)
        nested = nesting(trace)
        is_op = trace.kind == OP
        inside_op = (nested.parent >= 0) & is_op[nested.parent]
        for row in np.flatnonzero(is_op & ~inside_op).tolist():
            name = trace.names[trace.name[row]].removeprefix(ENGINE)
            line = next(accumulate) if name == ACCUMULATE else self.lines[name]
            key = (line, int(trace.phase[row]))
            found[key] = found.get(key, 0) + int(trace.duration_ns[row])
        assert next(accumulate, None) is None
        return found


def test_a_line_whose_backward_does_more_than_its_forward_is_charged_with_both(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        x = torch.randn(400, requires_grad=True)
        rows = torch.zeros(20000, dtype=torch.long)
        y = x[rows]
        loss = y.sum()
        loss.backward()""",
    )
    truth = Truth(
        {
            "aten::randn": 2,
            "aten::zeros": 3,
            "aten::index": 4,
            "IndexBackward0": 4,
            "aten::sum": 5,
            "SumBackward0": 5,
            "aten::ones_like": 6,
        },
        accumulate=[4],
    )

    lines = Lines(trace)
    slow = next(row for row in lines if row.line == 4)

    assert costs_of_lines(trace) == truth.costs(trace)
    counts = {phase: sum(op.count for op in lines.ops(slow) if op.phase == phase) for phase in (FORWARD, BACKWARD)}
    assert counts[BACKWARD] > counts[FORWARD] > 0


def test_two_layers_on_two_lines_share_the_backward_pass(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        x = torch.randn(64, 32)
        wide = torch.randn(32, 256, requires_grad=True)
        thin = torch.randn(256, 1, requires_grad=True)
        h = x.mm(wide)
        h = h.tanh()
        y = h.matmul(thin)
        loss = y.mean()
        loss.backward()""",
    )
    truth = Truth(
        {
            "aten::mm": 5,
            "aten::tanh": 6,
            "TanhBackward0": 6,
            "aten::matmul": 7,
            "aten::mean": 8,
            "MeanBackward0": 8,
            "aten::ones_like": 9,
        },
        accumulate=[7, 5],
    )
    found = costs_of_lines(trace)
    nodes = [row for row in range(len(trace)) if trace.names[trace.name[row]] == f"{ENGINE}MmBackward0"]
    second, first = (int(trace.duration_ns[row]) for row in nodes)
    accumulated = [int(trace.duration_ns[row]) for row in range(len(trace)) if is_accumulation(trace, row)]

    assert found[5, BACKWARD] == first + accumulated[1]
    assert found[7, BACKWARD] == second + accumulated[0]
    truth.lines["MmBackward0"] = truth.lines["aten::randn"] = 0
    rest = {key: time for key, time in truth.costs(trace).items() if key[0] not in (0, 5, 7)}
    assert {key: found[key] for key in rest} == rest


def is_accumulation(trace: Trace, row: int) -> bool:
    return trace.names[trace.name[row]] == ENGINE + ACCUMULATE


def test_a_loop_is_charged_with_all_its_rounds(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        w = torch.ones(8, 8, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1, foreach=False)
        for step in range(5):
            y = w.exp()
            loss = y.sum()
            loss.backward()
            opt.step()
            w.grad.zero_()""",
    )
    rows = {row.line: row for row in Lines(trace)}
    truth = Truth(
        {
            "aten::ones": 2,
            "aten::exp": 5,
            "ExpBackward0": 5,
            "aten::sum": 6,
            "SumBackward0": 6,
            "aten::ones_like": 7,
            "aten::add_": 8,
            "aten::zero_": 9,
        },
        accumulate=[5] * 5,
    )

    assert costs_of_lines(trace) == truth.costs(trace)
    assert [op.count for op in Lines(trace).ops(rows[5]) if op.name == "aten::exp"] == [5]
    assert rows[8].optimizer_ns == rows[8].self_ns > 0
    assert not rows[4].has_ops


def test_a_graph_run_backward_twice_charges_its_lines_twice(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        x = torch.ones(50, requires_grad=True)
        y = x.exp()
        loss = y.sum()
        loss.backward(retain_graph=True)
        loss.backward()""",
    )
    lines = {"aten::ones": 2, "aten::exp": 3, "ExpBackward0": 3, "aten::sum": 4, "SumBackward0": 4}
    costs = Truth({**lines, "aten::ones_like": 0}, accumulate=[3, 3]).costs(trace)
    found = costs_of_lines(trace)

    assert {key: found[key] for key in costs if key[0]} == {key: time for key, time in costs.items() if key[0]}
    assert found[5, BACKWARD] + found[6, BACKWARD] == costs[0, BACKWARD]


def test_a_custom_function_has_the_lines_of_its_backward_and_the_line_that_applied_it(shell: Shell) -> None:
    trace = profile_cell(shell, CUSTOM_FUNCTION + "y.sum().backward()")
    by_op = lines_by_op(trace)
    rows = {row.line: row for row in Lines(replace(trace, outside=None, samples=None))}

    assert by_op["aten::exp"] == {6}
    assert by_op["aten::cos"] == {10}
    assert by_op["aten::mul"] == {11}
    assert by_op["Scale"] == by_op["ScaleBackward"] == by_op[f"{ENGINE}ScaleBackward"] == {13}
    assert (rows[10].forward_ns, rows[10].self_ns) == (0, rows[10].backward_ns)
    inner = sum(rows[line].self_ns for line in (6, 10, 11))
    assert rows[13].total_ns == rows[13].self_ns + inner
    assert rows[13].self_ns == rows[13].forward_ns + rows[13].backward_ns


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpointed_function_is_charged_with_its_second_run_and_its_backward(
    shell: Shell, use_reentrant: bool
) -> None:
    trace = profile_cell(shell, checkpointed(use_reentrant=use_reentrant))
    by_op = lines_by_op(trace)
    rows = {row.line: row for row in Lines(replace(trace, outside=None, samples=None))}

    assert by_op["aten::tanh"] == by_op[f"{ENGINE}TanhBackward0"] == by_op["aten::tanh_backward"] == {7}
    assert by_op["aten::mm"] == by_op[f"{ENGINE}MmBackward0"] == {6}
    assert by_op["aten::exp"] == by_op[f"{ENGINE}ExpBackward0"] == {9}
    twice = [op for op in Lines(trace).ops(rows[7]) if op.name == "aten::tanh"]
    assert sorted((op.phase, op.count) for op in twice) == [(FORWARD, 1), (BACKWARD, 1)]
    assert rows[8].total_ns == rows[8].self_ns + rows[6].self_ns + rows[7].self_ns
    assert sum(row.self_ns for row in rows.values()) == in_ops_ns(trace)


def test_each_thread_has_its_own_lines(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        import threading
        def left():
            for i in range(30):
                x = torch.ones(10)
                y = x.sin()
        def right():
            for i in range(30):
                x = torch.ones(10, requires_grad=True)
                y = x.cos()
                y.sum().backward()
        threads = [threading.Thread(target=left), threading.Thread(target=right)]
        for thread in threads: thread.start()
        for i in range(30): z = torch.ones(10).tan()
        for thread in threads: thread.join()""",
    )
    by_op = lines_by_op(trace)

    assert by_op["aten::sin"] == {6, 10}
    assert by_op["aten::cos"] == by_op[f"{ENGINE}CosBackward0"] == {10}
    assert by_op["aten::sum"] == by_op[f"{ENGINE}SumBackward0"] == {11}
    assert by_op["aten::tan"] == {14}
    assert by_op["aten::ones"] == {5, 9, 14}
    assert by_op[ENGINE + ACCUMULATE] == {10}


def test_gradients_of_gradients_belong_to_the_first_line(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        x = torch.ones(5, requires_grad=True)
        y = x.sin()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.exp().sum().backward()""",
    )
    by_op = lines_by_op(trace)

    assert by_op["aten::sin"] <= {3}
    assert by_op["aten::cos"] == {3}
    assert by_op[f"{ENGINE}CosBackward0"] == by_op[f"{ENGINE}MulBackward0"] == {3}
    assert by_op["aten::exp"] == by_op[f"{ENGINE}ExpBackward0"] == {5}


def test_a_hook_has_its_own_line_in_the_backward_pass(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        x = torch.ones(5, requires_grad=True)
        y = x.sin()
        y.register_hook(
            lambda grad: grad.atan()
        )
        y.sum().backward()
        z = torch.ones(3).cosh()""",
    )
    by_op = lines_by_op(trace)

    assert by_op["aten::atan"] == {5}
    assert by_op[f"{ENGINE}SinBackward0"] == {3}
    assert by_op["aten::cosh"] == {8}


def test_ops_outside_the_marked_functions_of_a_call_belong_to_the_calling_line(shell: Shell) -> None:
    shell.ip.run_cell("def around(f, x):\n    before = x.sinh()\n    inside = f(before)\n    return inside.cosh()")
    trace = profile_cell(
        shell,
        """
        def inner(x):
            return x.tanh()
        y = around(inner, torch.ones(4))""",
        "--no-with-stack",
    )
    by_op = lines_by_op(trace)

    assert by_op["aten::tanh"] == {3}
    assert by_op["aten::sinh"] == by_op["aten::cosh"] == {4}


@pytest.mark.parametrize("hook", [NATIVE])
def test_with_exact_stacks_and_samples_functions_run_without_marks_and_have_their_lines(
    shell: Shell, hook: str
) -> None:
    shell.ip.run_cell("import time\ndef earlier():\n    time.sleep(0.1)")
    trace = profile_cell(
        shell,
        """
        def work(x):
            time.sleep(0.1)
            return x.tanh()
        y = work(torch.ones(4))
        earlier()
        names = work.__code__.co_names""",
        f"--hook {hook}",
    )
    slowest = sorted(Lines(trace), key=lambda row: -row.outside_ns)[:2]

    assert shell.ip.user_ns["names"] == ("time", "sleep", "tanh")
    assert lines_by_op(trace)["aten::tanh"] == {4}
    # Samples take the time from the lines that called the functions.
    assert [row.source for row in slowest] == ["time.sleep(0.1)"] * 2
    assert min(row.outside_ns for row in slowest) > 50_000_000
    assert trace.lines_note == ""


@pytest.mark.parametrize("op", ["x.detach()", "torch.empty(0)", "x.view(-1)"])
def test_a_function_of_nothing_but_the_smallest_op_keeps_its_lines(shell: Shell, op: str) -> None:
    trace = profile_cell(
        shell,
        f"""
        import torch
        def small(x):
            if x is None:
                return
            {op}
        x = torch.ones(4)
        for i in range(3000):
            small(None)
            small(x)""",
        "--hook kineto",
    )

    assert [row.line for row in Lines(trace) if row.count >= 3000] == [6]
    assert trace.lines_note == ""
