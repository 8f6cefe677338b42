"""The backward pass on the lines of the forward ops, held against the graph itself."""

import textwrap

import pytest
from lines_of_cells import ENGINE, profile_cell
from marked_cells import Shell

from mtprof_nb.analysis.attribution import attribution
from mtprof_nb.trace import Trace

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
        last = a.cosh()
        s = b.sum() + last.sum()
        s.backward()""",
    "a list of tensors at once": """
        x = [torch.rand(3, requires_grad=True) for _ in range(3)]
        y = torch._foreach_mul(x, 2.0)
        a = y[0].sinh()
        b = y[2].cosh()
        s = a.sum() + b.sum()
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


@pytest.mark.parametrize("flags", KINETO)
@pytest.mark.parametrize("program", WRITES.values(), ids=WRITES)
def test_every_node_of_writes_into_tensors_is_on_the_line_that_wrote(shell: Shell, program: str, flags: str) -> None:
    text = textwrap.dedent(program).removeprefix("\n")

    assert lines_of_nodes(profile_cell(shell, text, flags)) == truth_of(text, first_line=2).nodes


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
