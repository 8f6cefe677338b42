"""Chains of pointwise ops on the same large tensors."""

from __future__ import annotations

import numpy as np

from mtprof_nb.advice.causes.source_text import nested_operators
from mtprof_nb.advice.causes.tensor_inputs import TensorInput, is_pointwise, largest_inputs, with_inputs
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.program_time.gaps import outermost_ops
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, recorded_ns, slowest_line
from mtprof_nb.analysis.program_time.spent_time import saved_ns, spent_ns, with_backward
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import FORWARD, OTHER, Bool, Int64, Trace

#: Smaller tensors stay in the caches of a processor, so that reading them again costs little.
_LARGE = 1 << 20
_LEAST_OPS, _LEAST_SHARE = 3, 0.25
_FIX = """\
@torch.compile  # one pass over the memory instead of one for each op
def f(x): ...
# or in place, where no gradient needs the old values: x.mul_(2).add_(1)"""


@rule
def pointwise_chain(trace: Trace) -> Finding | None:
    """Find chains of three or more pointwise ops on tensors of one shape and over a million elements; needs shapes.

    One or two ops again and again make no chain: they may have the same inputs each time, as in a benchmark. They do
    make one where the source shows that each takes the result of the one before: `a * b * c * d`.
    """
    chosen = _in_chains(trace)
    if not chosen.any():
        return None
    inside = with_backward(trace, chosen)
    ns = spent_ns(trace, inside)
    if ns < _LEAST_SHARE * recorded_ns(trace):
        return None
    return Finding(
        "Pointwise ops go through the same large tensors one after the other",
        f"{units.plural(int(chosen.sum()), 'op')} in chains, each on tensors of over a million elements, take "
        f"{of_recorded(trace, ns)}, backward passes included.",
        _FIX,
        slowest_line(trace, inside),
        found_ns=ns,
        at_most_ns=saved_ns(trace, inside),
    )


def _in_chains(trace: Trace) -> Bool:
    """The pointwise ops that follow each other on one thread, three or more, on tensors of one shape."""
    in_chain, outer = np.zeros(len(trace), np.bool_), outermost_ops(trace)
    shape, elements = largest_inputs(trace)
    is_link = is_pointwise(trace) & (elements > _LARGE) & np.isin(trace.phase, (FORWARD, OTHER))
    if not is_link.any():
        return in_chain
    repeated = []
    for run in runs_of_equal(trace.track[outer]):
        rows = outer[run]
        key = np.where(is_link[rows], shape[rows], -1)
        chain = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
        long = (np.bincount(chain)[chain] >= _LEAST_OPS) & (key >= 0)
        for links in np.split(rows[long], np.flatnonzero(np.diff(chain[long])) + 1):
            in_chain[links] = True
            if _is_repetition(trace, links):
                repeated.append(links)
    are_expressions = _are_expressions(trace, repeated)
    for links in repeated:
        in_chain[links] = are_expressions[links].all()
    return in_chain


def _is_repetition(trace: Trace, links: Int64) -> bool:
    """Whether these ops repeat one or two ops of the same lines."""
    ops = np.stack([trace.name[links], attribution(trace).line[links]])
    sizes = (size for size in range(1, _LEAST_OPS) if 2 * size <= len(links))
    return any(np.array_equal(ops[:, size:], ops[:, :-size]) for size in sizes)


def _are_expressions(trace: Trace, chains: list[Int64]) -> Bool:
    """The ops between two tensors of lines that are one expression of three nested operators or more."""
    caused = attribution(trace)
    lines = {int(number) for links in chains for number in caused.line[links[:_LEAST_OPS]]} - {-1}
    chosen = [number for number in lines if nested_operators(trace, caused.lines[number]) >= _LEAST_OPS]
    return np.isin(caused.line, chosen) & with_inputs(trace, _is_pair_of_one_shape)


def _is_pair_of_one_shape(inputs: list[TensorInput]) -> bool:
    """Whether an op has two tensors, both of the same shape."""
    return len(inputs) == 2 and inputs[0].shape == inputs[1].shape
