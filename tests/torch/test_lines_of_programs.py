"""Cost per line of real programs, held against what their ops tell without any line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from marked_cells import Shell, new_shell

import mtprof_nb
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.lines import Lines
from mtprof_nb.trace import BACKWARD, FORWARD, OP, OPTIMIZER, OTHER, Trace

torch = pytest.importorskip("torch")

ENGINE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::AccumulateGrad"


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with new_shell() as made:
        made.ip.run_cell("%load_ext mtprof_nb\nimport torch\nfrom torch import nn")
        yield made
        made.ip.run_cell("%unload_ext mtprof_nb")


def profile_cell(shell: Shell, text: str, flags: str = "") -> Trace:
    """Run a cell below `%%mtprofile`; its lines count from 2."""
    result = shell.ip.run_cell(f"%%mtprofile -q {flags}\n" + textwrap.dedent(text).removeprefix("\n"))
    result.raise_error()
    prof = mtprof_nb.last()
    assert prof is not None
    return prof.trace


@dataclass
class Truth:
    """What a program's ops say of themselves: outermost ops by name, in order where a name is not enough."""

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


def costs_of_lines(trace: Trace) -> dict[tuple[int, int], int]:
    """Nanoseconds by line and phase, as the table of lines has them."""
    found = {}
    for row in Lines(trace):
        for phase, time_ns in (
            (FORWARD, row.forward_ns),
            (BACKWARD, row.backward_ns),
            (OPTIMIZER, row.optimizer_ns),
            (OTHER, row.other_ns),
        ):
            if time_ns:
                found[row.line, phase] = time_ns
    return found


def lines_by_op(trace: Trace) -> dict[str, set[int]]:
    """The lines on which ops of each name ran, by the table's own list of ops."""
    lines, found = Lines(trace), dict[str, set[int]]()
    for row in lines:
        for op in lines.ops(row):
            found.setdefault(op.name, set()).add(row.line)
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
    dear = next(row for row in lines if row.line == 4)

    assert costs_of_lines(trace) == truth.costs(trace)
    counts = {phase: sum(op.count for op in lines.ops(dear) if op.phase == phase) for phase in (FORWARD, BACKWARD)}
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
    assert 4 not in rows


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
    trace = profile_cell(
        shell,
        """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.exp()
            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                slope = x.cos()
                return grad * slope
        x = torch.ones(100, requires_grad=True)
        y = Scale.apply(x)
        y.sum().backward()""",
    )
    by_op = lines_by_op(trace)
    rows = {row.line: row for row in Lines(trace)}

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
    trace = profile_cell(
        shell,
        f"""
        from torch.utils.checkpoint import checkpoint
        w = torch.randn(16, 16, requires_grad=True)
        x = torch.randn(16, 16, requires_grad=True)
        def block(x):
            h = x.mm(w)
            return h.tanh()
        y = checkpoint(block, x, use_reentrant={use_reentrant})
        z = y.exp()
        z.sum().backward()""",
    )
    by_op = lines_by_op(trace)
    rows = {row.line: row for row in Lines(trace)}

    assert by_op["aten::tanh"] == by_op[f"{ENGINE}TanhBackward0"] == by_op["aten::tanh_backward"] == {7}
    assert by_op["aten::mm"] == by_op[f"{ENGINE}MmBackward0"] == {6}
    assert by_op["aten::exp"] == by_op[f"{ENGINE}ExpBackward0"] == {9}
    twice = [op for op in Lines(trace).ops(rows[7]) if op.name == "aten::tanh"]
    assert sorted((op.phase, op.count) for op in twice) == [(FORWARD, 1), (BACKWARD, 1)]
    assert rows[8].total_ns == rows[8].self_ns + rows[6].self_ns + rows[7].self_ns
    assert sum(row.self_ns for row in rows.values()) == total_self_ns(trace)


def total_self_ns(trace: Trace) -> int:
    return int(nesting(trace).self_ns[trace.kind == OP].sum())


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
    )
    by_op = lines_by_op(trace)

    assert by_op["aten::tanh"] == {3}
    assert by_op["aten::sinh"] == by_op["aten::cosh"] == {4}


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
    rows = {(row.file in trace.sources, row.line): row for row in Lines(trace) if row.file.startswith("<")}

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
    trace = profile_cell(shell, text, "--with-stack")
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

    assert sum(row.self_ns for row in lines) == total_self_ns(trace)
    assert sum(row.count for row in lines) == int((trace.kind == OP).sum())
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
    trace = profile_cell(shell, text)

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
