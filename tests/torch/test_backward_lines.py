"""The backward pass on the lines of the forward ops, held against the graph itself."""

import importlib
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from lines_of_cells import CUSTOM_FUNCTION, checkpointed, profile_cell
from marked_cells import Shell
from recording import NATIVE

import mtprof_nb as mtp
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.model.trace import BACKWARD, OP, Trace
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE

torch = pytest.importorskip("torch")

from lines_by_graph import truth_of  # noqa: E402 - needs torch

KINETO = ("--hook kineto", "--hook kineto --with-stack")

WRITES = {
    "a loop that writes into its output": """
        w = torch.rand(4, 4, requires_grad=True)
        u = torch.rand(4, 4, requires_grad=True)
        x = torch.rand(3, 2, 4)
        out = torch.zeros(3, 2, 4)
        h = torch.zeros(2, 4)
        for t in range(3):
            h = torch.tanh(
                x[t].mm(w) + h.mm(u)
            )
            out[t] = h
        z = out.exp()
        s = z.sum()
        s.backward()""",
    "an in-place op on a column": """
        w = torch.rand(4, 4, requires_grad=True)
        y = torch.rand(3, 4) @ w
        y[:, 1].mul_(3.0)
        s = y.exp().sum()
        s.backward()""",
    "an addition to some rows": """
        w = torch.rand(4, 4, requires_grad=True)
        v = torch.rand(2, 4, requires_grad=True)
        y = torch.rand(5, 4) @ w
        y[2:4] += v
        z = y.exp()
        s = z.sum()
        s.backward()""",
    "one write after another": """
        w = torch.rand(4, 4, requires_grad=True)
        y = w.exp()
        z = y * 2
        z.add_(1)
        z.relu_()
        z = z * 3
        z.view(2, 8)[0].sin_()
        q = torch.zeros(4, 4)
        q.copy_(z)
        a = q[2:]
        b = a.clone()
        q[0] = 5
        q[q > 1] = 0
        c = b.exp()
        last = a.cosh()
        s = c.sum() + last.sum()
        s.backward()""",
    "a list of tensors at once": """
        x = [torch.rand(3, requires_grad=True) for _ in range(3)]
        y = torch._foreach_mul(x, 2.0)
        a = y[0].sinh()
        b = y[2].cosh()
        s = a.sum() + b.sum()
        s.backward()""",
}

PYTHON = {
    "a backward written in Python": CUSTOM_FUNCTION
    + "z = y.tanh()\nlast = Scale.apply(z)\ns = last.sum()\ns.backward()",
    "hooks of tensors": """
        x = torch.ones(5, requires_grad=True)
        y = x.sin()
        def hook(grad):
            return grad.atan()
        y.register_hook(hook)
        z = y.tanh()
        z.register_hook(
            lambda grad: grad.sinh()
        )
        x.register_hook(lambda grad: grad.cosh())
        s = z.sum()
        s.backward()""",
    "hooks of modules": """
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        def after(module, inputs, outputs):
            inputs[0].atan()
        net[0].register_full_backward_hook(after)
        def before(module, outputs):
            outputs[0].sinh()
        net[2].register_full_backward_pre_hook(before)
        x = torch.ones(3, 4, requires_grad=True)
        y = net(x)
        z = y.exp()
        s = z.sum()
        s.backward()""",
    "a checkpoint": checkpointed(use_reentrant=False),
    "a reentrant checkpoint": checkpointed(use_reentrant=True),
    "hooks of saved tensors": """
        def packed(x):
            return x
        def unpacked(x):
            return x.atan()
        x = torch.rand(5, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(packed, unpacked):
            y = x.sin()
            z = y * y
        s = z.sum()
        s.backward()""",
}


def lines_of_events(trace: Trace) -> list[tuple[str, int | None]]:
    """Name and line of each event."""
    found = attribution(trace)
    return [
        (trace.names[name], found.lines[line].line if line >= 0 else None)
        for name, line in zip(trace.name.tolist(), found.line.tolist(), strict=True)
    ]


def lines_of_nodes(trace: Trace) -> list[tuple[str, int | None]]:
    """Name and line of each autograd node that the engine ran, in order."""
    return [(name.removeprefix(ENGINE), line) for name, line in lines_of_events(trace) if name.startswith(ENGINE)]


def lines_of_linked_ops(trace: Trace) -> list[tuple[str, int | None]]:
    """Name and line of each op of the backward pass that has a forward op, in order."""
    is_linked = (trace.phase == BACKWARD) & (trace.kind == OP) & (trace.forward >= 0)
    return [pair for pair, linked in zip(lines_of_events(trace), is_linked.tolist(), strict=True) if linked]


@pytest.mark.parametrize("hook", [NATIVE])
@pytest.mark.parametrize("program", WRITES.values(), ids=WRITES)
def test_every_node_of_writes_into_tensors_is_on_the_line_that_wrote(shell: Shell, program: str, hook: str) -> None:
    text = textwrap.dedent(program).removeprefix("\n")

    assert lines_of_nodes(profile_cell(shell, text, f"--hook {hook}")) == truth_of(text, first_line=2).nodes


@pytest.mark.parametrize("flags", KINETO)
def test_the_node_above_several_roots_stays_on_the_line_that_called_backward(shell: Shell, flags: str) -> None:
    trace = profile_cell(
        shell,
        """
        x = torch.rand(5, requires_grad=True)
        a = x.exp()
        b = x.cosh()
        torch.autograd.backward([a.sum(), b.sum()])""",
        flags,
    )
    assert lines_of_nodes(trace)[0] == ("torch::autograd::GraphRoot", 5)


def test_a_write_that_was_not_recorded_has_no_line_but_that_of_backward(shell: Shell) -> None:
    shell.ip.run_cell("w = torch.rand(4, requires_grad=True)\ny = w * 2\ny[1:] = 2\ny[:2].mul_(3)")
    trace = profile_cell(
        shell,
        """
        z = y.sinh()
        s = z.sum()
        s.backward()""",
    )
    assert lines_of_nodes(trace) == [
        ("SumBackward0", 3),
        ("SinhBackward0", 2),
        ("torch::autograd::CopySlices", 4),
        ("torch::autograd::CopySlices", 4),
        ("MulBackward0", 4),
        ("torch::autograd::AccumulateGrad", 4),
    ]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An installed library with an `autograd.Function`."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "cubes_of_library.py").write_text(
        textwrap.dedent("""\
            import torch
            class Cube(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x**3
                @staticmethod
                def backward(ctx, grad):
                    (x,) = ctx.saved_tensors
                    return 3 * torch.cos(x) * grad
            """)
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "cubes_of_library", raising=False)
    return importlib.import_module("cubes_of_library")


@pytest.mark.parametrize("hook", [NATIVE])
def test_the_backward_of_a_librarys_function_is_on_the_line_that_applied_it(library: ModuleType, hook: str) -> None:
    x = torch.ones(5, requires_grad=True)

    def step() -> None:
        y = library.Cube.apply(x)
        loss = y.sum()
        loss.backward()

    with mtp.profile(with_stack=True, hook=hook) as prof:
        step()

    applied = step.__code__.co_firstlineno + 1
    found = dict(lines_of_linked_ops(prof.trace))
    assert (found["aten::cos"], found["aten::mul"], found["aten::expand"]) == (applied, applied, applied + 1)
    (row,) = [row for row in prof.lines() if row.line == applied + 2]
    assert row.total_ns == row.self_ns


@pytest.mark.parametrize("hook", [NATIVE])
def test_a_function_of_another_cell_has_the_backward_of_a_librarys_function_where_it_applied_it(
    shell: Shell, library: ModuleType, hook: str
) -> None:
    shell.ip.user_ns["Cube"] = library.Cube
    shell.ip.run_cell(
        "x = torch.ones(5, requires_grad=True)\n"
        "def step():\n"
        "    y = Cube.apply(x)\n"
        "    loss = y.sum()\n"
        "    loss.backward()\n"
    )

    found = dict(lines_of_linked_ops(profile_cell(shell, "step()", f"--hook {hook} --with-stack")))

    assert (found["aten::cos"], found["aten::mul"], found["aten::expand"]) == (3, 3, 4)


@pytest.mark.parametrize("hook", [NATIVE])
def test_a_backward_that_runs_another_has_its_own_lines(library: ModuleType, hook: str) -> None:
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = library.Cube.apply(x)
            return torch.autograd.grad(y, x, grad)

    x = torch.ones(5, requires_grad=True)
    with mtp.profile(with_stack=True, hook=hook) as prof:
        loss = Nested.apply(x).sum()
        loss.backward()

    found = dict(lines_of_linked_ops(prof.trace))
    inner = Nested.backward.__code__.co_firstlineno + 4
    assert (found["aten::pow"], found["aten::cos"], found["aten::mul"]) == (inner, inner, inner)
    rows = {row.line: row for row in prof.lines()}
    called = test_a_backward_that_runs_another_has_its_own_lines.__code__.co_firstlineno
    outer = next(line for line, row in rows.items() if "loss = Nested" in row.source and line > called)
    assert rows[outer].total_ns >= rows[outer].self_ns + rows[inner].self_ns
    assert rows[outer + 1].total_ns == rows[outer + 1].self_ns
