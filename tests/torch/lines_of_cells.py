"""Cells that are profiled, and what the table of their lines says."""

import textwrap

from marked_cells import Shell

import mtprof_nb
from mtprof_nb.model.trace import BACKWARD, FORWARD, OPTIMIZER, OTHER, Trace
from mtprof_nb.tables.line_table import Lines

#: A function with a backward of its own, which is applied on the last line.
CUSTOM_FUNCTION = textwrap.dedent(
    """\
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
    """
)


def checkpointed(*, use_reentrant: bool) -> str:
    """A program with a block that is computed again in the backward pass."""
    return textwrap.dedent(
        f"""\
        from torch.utils.checkpoint import checkpoint
        w = torch.randn(16, 16, requires_grad=True)
        x = torch.randn(16, 16, requires_grad=True)
        def block(x):
            h = x.mm(w)
            return h.tanh()
        y = checkpoint(block, x, use_reentrant={use_reentrant})
        z = y.exp()
        s = z.sum()
        s.backward()"""
    )


def profile_cell(shell: Shell, text: str, flags: str = "") -> Trace:
    """Run a cell below `%%mtprofile`; its lines count from 2."""
    result = shell.ip.run_cell(f"%%mtprofile -q {flags}\n" + textwrap.dedent(text).removeprefix("\n"))
    result.raise_error()
    prof = mtprof_nb.last()
    assert prof is not None
    return prof.trace


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
