"""Forward passes that record gradients and have no backward pass."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.finding import CERTAIN, LIKELY, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.causes.source_words import code_has
from mtprof_nb.analysis.causes.spent_time import with_nested
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.memory.memory_at_peak import held_at_peak
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.model.trace import BACKWARD, FORWARD, Bool, SourceLine, Trace

_LEAST_NODES = 4
_EVALUATES = re.compile(r"\.eval\(\)")
_Callers = tuple[int, ...]
_FIX = "with torch.inference_mode():  # or torch.no_grad()\n    output = model(x)"


@rule
def missing_no_grad(trace: Trace) -> Finding | None:
    """Find autograd graphs that were built without a backward pass; needs memory.

    Where others have one, as in a cell that trains and evaluates, the line has to be one from which no graph has. A
    graph that is still held at the end may have its backward pass later. The rule is then silent, unless the file of
    the line calls `.eval()`: after an evaluation, a kept score holds the graph.
    """
    records, at_peak = trace.allocations, held_at_peak(trace)
    made = _made_for_nothing(trace)
    if records is None or at_peak is None or int(made.sum()) < _LEAST_NODES:
        return None
    of_graph = with_nested(trace, made)
    rows = at_peak.rows[of_graph[records.event[at_peak.rows]] & (records.event[at_peak.rows] >= 0)]
    kept, dropped = int(records.nbytes[rows].sum()), int(records.nbytes[rows[at_peak.is_released(rows)]].sum())
    line, is_dropped = _common_line(trace, made), dropped >= kept / 2
    if not kept or not (is_dropped or (line and code_has(trace, [line.file], _EVALUATES))):
        return None
    peak, held = peak_bytes(trace) or 0, "" if is_dropped else ", some of it held to the end"
    return Finding(
        "Gradients are recorded here and never used"
        if is_dropped
        else "Gradients are recorded here for no backward pass",
        f"{units.plural(int(made.sum()), 'op')} kept inputs for a backward pass that did not come: "
        f"{units.nbytes(kept)} of {units.nbytes(peak)} at the peak{held}.",
        _FIX,
        line,
        at_most_bytes=kept,
        certainty=CERTAIN if is_dropped else LIKELY,
    )


def _made_for_nothing(trace: Trace) -> Bool:
    """The ops that made an autograd node without a backward pass: all, or where there is one those of one line.

    The line is the outermost from which nodes were made and none was used; of several, that with the most nodes. Four
    have to follow each other: a single op keeps nothing but its result.
    """
    made, is_backward = makes_node(trace), trace.phase == BACKWARD
    if not is_backward.any():
        return made
    nothing = np.zeros(len(trace), np.bool_)
    if np.any(is_backward & (trace.sequence_nr >= 0) & (trace.forward < 0)):
        return nothing  # it is not known which nodes these used
    used, chain = _used(trace), attribution(trace).chain
    with_used = {caller for node in set(chain[used].tolist()) for caller in _callers(trace, node)}
    numbers, counts = np.unique(chain[made & ~used & (chain >= 0)], return_counts=True)
    unused: dict[_Callers, list[int]] = {}
    for node in numbers.tolist():
        if caller := next((caller for caller in _callers(trace, node) if caller not in with_used), None):
            unused.setdefault(caller, []).append(node)
    nodes = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    if not unused:
        return nothing
    most = max(unused.values(), key=lambda chains: sum(nodes[one] for one in chains))
    found = made & ~used & np.isin(chain, most)
    in_a_row = np.convolve(found[made | used], np.ones(_LEAST_NODES, np.int64))
    return found if in_a_row.max() >= _LEAST_NODES else nothing


def _used(trace: Trace) -> Bool:
    """The ops whose autograd node had a backward pass."""
    used = np.zeros(len(trace), np.bool_)
    used[trace.forward[(trace.phase == BACKWARD) & (trace.forward >= 0)]] = True
    return used


def _callers(trace: Trace, chain: int) -> list[_Callers]:
    """The lines from the outermost on as far as each line of a chain."""
    lines = attribution(trace).chains.innermost_first(chain)[::-1]
    return [tuple(lines[: count + 1]) for count in range(len(lines))]


def makes_node(trace: Trace) -> Bool:
    """The ops that made an autograd node: after them, the sequence number of their thread is a higher one."""
    made = np.zeros(len(trace), np.bool_)
    numbered = np.flatnonzero(counted_ops(trace) & (trace.phase == FORWARD) & (trace.sequence_nr >= 0))
    for track in set(trace.track[numbered].tolist()):
        rows = numbered[trace.track[numbered] == track]
        made[rows[:-1]] = np.diff(trace.sequence_nr[rows]) > 0
    return made


def _common_line(trace: Trace, made: Bool) -> SourceLine | None:
    """The innermost line from which all these nodes were made and none with a backward pass; else their outermost."""
    caused = attribution(trace)
    known = sorted({chain for chain in caused.chain[made].tolist() if chain >= 0})
    if not known:
        return None
    chains = [caused.chains.innermost_first(chain)[::-1] for chain in known]
    used = set(caused.chain[_used(trace)].tolist())
    trained = {line for chain in used for line in caused.chains.innermost_first(chain)}
    common = [level[0] for level in zip(*chains, strict=False) if len(set(level)) == 1]
    return caused.lines[next((line for line in common[::-1] if line not in trained), chains[0][0])]
