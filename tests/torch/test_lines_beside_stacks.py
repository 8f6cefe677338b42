"""Lines of real programs beside stacks, compiled functions and the parameters of optimizers."""

import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
from lines_of_cells import costs_of_lines, lines_by_op, profile_cell
from marked_cells import Shell

from mtprof_nb.analysis.costs import counted_ops, in_ops_ns
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.summary import outside_ops_ns, wall_ns
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE
from mtprof_nb.model.trace import OP, SourceLine, Trace
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.views.strip import phase_shares

torch = pytest.importorskip("torch")


def test_with_stacks_a_function_of_an_earlier_cell_shows_its_own_lines(shell: Shell) -> None:
    shell.ip.run_cell(
        "class Net(nn.Module):\n"
        "    def forward(self, x):\n"
        "        h = x.sinh()\n"
        "        return -h * 2\n"
        "def train(net, x):\n"
        "    loss = net(x).sum()\n"
        "    loss.backward()\n"
    )
    trace = profile_cell(shell, "x = torch.ones(5, requires_grad=True)\ntrain(Net(), x)", "--with-stack")
    by_op = lines_by_op(trace)
    lines = Lines(replace(trace, outside=None, samples=None))
    (cell,) = (file for file, text in trace.sources.items() if text.startswith("%%mtprofile"))
    rows = {(row.file == cell, row.line): row for row in lines if row.file.startswith("<")}

    assert by_op["aten::sinh"] == by_op[f"{ENGINE}SinhBackward0"] == {3}
    assert by_op["aten::neg"] == by_op[f"{ENGINE}NegBackward0"] == {4}
    assert by_op["aten::sum"] == by_op[f"{ENGINE}SumBackward0"] == {6}
    forward = rows[False, 3].self_ns + rows[False, 4].self_ns
    assert rows[False, 6].total_ns == rows[False, 6].self_ns + forward
    train = rows[False, 6].total_ns + rows[False, 7].total_ns
    assert rows[True, 3].total_ns == rows[True, 3].self_ns + train
    assert sum(row.self_ns for row in rows.values()) == sum(costs_of_lines(trace).values())


STATEMENTS = (
    "a = a + b",
    "b = a @ b",
    "a = torch.relu(a - b * 2)",
    "b[0] = a.sum()",
    "a = -b if bool(a.mean() > 0) else b.T",
    "a, b = b.clone(), a.softmax(0)",
    "b = nn.functional.normalize(b) + helper(a)",
    "c = [row.exp() for row in a[:2]]",
)


def test_marks_agree_with_stacks_on_every_forward_op(shell: Shell) -> None:
    rounds = "\n".join(f"    {STATEMENTS[(7 * i) % len(STATEMENTS)]}" for i in range(40))
    text = (
        "def helper(x):\n    y = x / 3\n    return y ** 2\n"
        f"a, b = torch.randn(6, 6), torch.randn(6, 6)\nfor i in range(3):\n{rounds}"
    )
    trace = profile_cell(shell, text, "--with-stack --no-python")
    assert trace.line is not None
    assert trace.stack is not None
    assert trace.stacks is not None
    cell = next(iter(trace.sources))
    checked = 0
    for row in np.flatnonzero(trace.kind == OP).tolist():
        frames = [frame for frame in trace.stacks.stack(trace.stack[row]) if frame.file == cell]
        if frames:
            checked += 1
            assert trace.lines[trace.line[row]] == (cell, frames[0].line), trace.names[trace.name[row]]
    assert checked > 600


def test_the_rows_sum_up_to_the_trace_with_every_flag(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        opt = torch.optim.Adam(model.parameters())
        for step in range(3):
            loss = model(torch.randn(4, 8)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()""",
        "--all",
    )
    lines = Lines(trace)

    assert sum(row.self_ns for row in lines) == in_ops_ns(trace)
    assert sum(row.count for row in lines) == counted_ops(trace).sum()
    assert {"memory_bytes"} <= set(lines.to_dataframe().columns)
    assert {row.line for row in lines if row.optimizer_ns} == {8}
    assert "(unattributed)" not in {row.source for row in lines}


def test_a_compiled_function_keeps_its_graph(shell: Shell) -> None:
    text = """
        from torch._dynamo.testing import CompileCounter
        torch._dynamo.reset()
        counter = CompileCounter()
        def helper(x):
            y = x.sin()
            return y + 1
        def f(x):
            y = helper(x)
            return y.cos()
        fast = torch.compile(f, backend=counter)
        out = fast(torch.ones(3))
        counter.frame_count, counter.op_count"""
    trace = profile_cell(shell, text, "--no-with-stack")

    assert shell.ip.user_ns["_"] == (1, 3)
    assert trace.lines_note.startswith("no line marks inside functions, because the cell uses")
    assert lines_by_op(trace)["aten::sin"] == {12}


def test_a_function_of_a_marked_cell_is_compiled_whole_in_a_later_one(shell: Shell) -> None:
    profile_cell(shell, "def g(x):\n    y = x.sin()\n    return y.cos()\ng(torch.ones(2))")
    shell.ip.run_cell(
        "from torch._dynamo.testing import CompileCounter\ntorch._dynamo.reset()\ncounter = CompileCounter()\n"
        "torch.compile(g, backend=counter, fullgraph=True)(torch.ones(3))"
    ).raise_error()

    assert shell.ip.user_ns["counter"].frame_count == 1


def test_marked_functions_are_scripted_and_traced_as_ever(shell: Shell) -> None:
    profile_cell(
        shell,
        """
        def f(x):
            y = x.sin()
            return y + 1
        graph = torch.fx.symbolic_trace(f)
        scripted = torch.jit.script(f)
        same = bool((scripted(torch.ones(2)) == graph(torch.ones(2))).all())
        vmapped = torch.func.vmap(f)(torch.ones(2, 2))
        slope = torch.func.grad(lambda x: f(x).sum())(torch.ones(2))""",
    )

    assert shell.ip.user_ns["same"] is True
    assert [node.op for node in shell.ip.user_ns["graph"].graph.nodes] == [
        *("placeholder", "call_method", "call_function", "output"),
    ]


OPTIMIZERS = {
    "SGD": "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)",
    "Adam": "torch.optim.Adam(net.parameters(), foreach=False)",
}


@pytest.mark.parametrize("flags", ["--record-shapes", "--record-shapes --with-stack"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_every_op_of_the_optimizer_belongs_to_a_parameter(shell: Shell, optimizer: str, flags: str) -> None:
    setup = f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
                self.head = nn.Linear(16, 1)
            def forward(self, x):
                return self.head(self.body(x))
        net = Net()
        opt = {optimizer}
        def train(steps):
            for step in range(steps):
                opt.zero_grad()
                net(torch.ones(4, 8)).sum().backward()
                opt.step()
        train(1)"""
    shell.ip.run_cell(textwrap.dedent(setup)).raise_error()
    trace = profile_cell(shell, "train(3)", flags)
    found = Lines(trace).parameters()
    names = ["Net.body.0.bias", "Net.body.0.weight", "Net.head.bias", "Net.head.weight"]
    in_steps = [row for row in np.flatnonzero(trace.kind == OP).tolist() if is_in_optimizer_step(trace, row)]

    assert sorted(cost.parameter for cost in found if cost.parameter) == names
    assert {cost.module for cost in found if cost.parameter} == {"Net.body.0", "Net.head"}
    assert sum(cost.count for cost in found if cost.parameter) == len(in_steps) > 0
    assert len({cost.count for cost in found if cost.parameter}) == 1
    assert sum(cost.self_ns for cost in found) == sum(row.optimizer_ns for row in Lines(trace))


def is_in_optimizer_step(trace: Trace, row: int) -> bool:
    parent = nesting(trace).parent
    while row >= 0 and not trace.names[trace.name[row]].startswith("Optimizer.step#"):
        row = int(parent[row])
    return row >= 0


def test_an_op_on_many_parameters_says_how_many(shell: Shell) -> None:
    trace = profile_cell(
        shell,
        """
        w = [torch.ones(2, requires_grad=True) for i in range(3)]
        opt = torch.optim.SGD(w, lr=0.1, foreach=True)
        sum(x.sum() for x in w).backward()
        opt.step()""",
        "--record-shapes",
    )

    assert [cost.parameter for cost in Lines(trace).parameters() if cost.parameter] == ["3 parameters"]


def test_lines_and_the_profiler_and_what_has_no_line_are_the_wall_time(shell: Shell) -> None:
    text = """
        x = torch.ones(8, 8)
        total = 0
        for i in range(300):
            total += sum(range(1000))
        y = (x @ x).sum()
        time.sleep(0.02)
        """
    shell.ip.user_ns["time"] = time
    trace = profile_cell(shell, text)
    outside_ns, lines = outside_ops_ns(trace), Lines(trace)
    assert outside_ns is not None
    # Samples before and after the cell are of the lines of this test that run it, which a notebook has not.
    marked = [row for row in lines if SourceLine(row.file, row.line) in (trace.outside or {})]
    unmarked_ns = outside_ns - sum(row.outside_ns or 0 for row in marked)

    assert wall_ns(trace) == in_ops_ns(trace) + outside_ns + trace.own_ns
    assert unmarked_ns >= 0
    assert sorted(row.line for row in marked) == [2, 3, 4, 5, 6, 7]
    assert min(row.outside_ns or 0 for row in lines) >= 0
    assert sum(share.ns for share in phase_shares(trace)) == wall_ns(trace) - trace.own_ns
    assert 0 < trace.own_ns < trace.overhead_ns
