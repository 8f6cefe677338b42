"""Forward passes that record gradients and have no backward pass."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.causes.source_text import code_has
from mtprof_nb.advice.finding import CERTAIN, LIKELY, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.memory.memory_curve import held_at_peak
from mtprof_nb.analysis.nesting import is_among, nesting
from mtprof_nb.analysis.program_time.gaps import outermost_ops
from mtprof_nb.analysis.program_time.spent_time import with_nested
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.trace import BACKWARD, FORWARD, Bool, Int64, SourceLine, Trace

_LEAST_NODES = 4
_EVALUATES = re.compile(r"\.eval\(\)")
_FIX = "with torch.inference_mode():  # or torch.no_grad()\n    output = model(x)"


@rule
def missing_no_grad(trace: Trace) -> Finding | None:
    """Find autograd graphs that were built without a backward pass; needs memory.

    Where others have one, as in a cell that trains and evaluates, the line has to be one from which no graph has. A
    graph that is still held at the end may have its backward pass later, as in the next cell. The rule is then silent,
    unless those of earlier passes were dropped, or the file of the line calls `.eval()`: after an evaluation, a kept
    score holds the graph.
    """
    records, at_peak = trace.allocations, held_at_peak(trace)
    made = _made_for_nothing(trace)
    if records is None or at_peak is None or int(made.sum()) < _LEAST_NODES:
        return None
    of_graph = with_nested(trace, made | _among(trace, made))
    rows = at_peak.rows[of_graph[records.event[at_peak.rows]] & (records.event[at_peak.rows] >= 0)]
    kept, dropped = int(records.nbytes[rows].sum()), int(records.nbytes[rows[at_peak.is_released(rows)]].sum())
    line, certainty = _common_line(trace, made), _dropped(trace, made, at_peak.release)
    is_dropped = dropped >= kept / 2 and certainty != ""
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
        certainty=certainty if is_dropped else LIKELY,
    )


def _dropped(trace: Trace, made: Bool, release: Int64) -> str:
    """How sure it is that graphs were dropped: certain if no result of them is held at the end; "" if it is not known.

    What a forward pass releases while it runs, as the variables of its functions, was not kept for a backward pass. If
    the last result is held, graphs were dropped if the same op made most results of its kind for none.
    """
    records, held = trace.allocations, np.zeros(len(trace) + 1, np.bool_)
    if records is None:
        return ""
    held[records.event[(records.nbytes > 0) & (release < 0)]] = True
    held[-1] = False  # what no op allocated
    nested = nesting(trace)
    for level in nested.levels()[:0:-1]:
        np.logical_or.at(held, nested.parent[level], held[level])
    results = made | _may_make(trace, made)
    ends = np.flatnonzero(results & held[:-1])
    if not len(ends):
        return CERTAIN
    namesakes = results.copy()
    for column in (trace.name, attribution(trace).chain, trace.stack, trace.module):
        namesakes &= True if column is None else column == column[ends[-1]]
    return LIKELY if 2 * np.count_nonzero(namesakes & ~held[:-1]) >= np.count_nonzero(namesakes) else ""


def _may_make(trace: Trace, made: Bool) -> Bool:
    """The last forward op of each thread, if it follows one of `made`: whether it made a node is not recorded."""
    may_make, numbered = np.zeros(len(trace), np.bool_), _numbered(trace)
    makes = np.flatnonzero(makes_node(trace))
    for track in set(trace.track[makes].tolist()):
        last, before = numbered[trace.track[numbered] == track][-1], makes[trace.track[makes] == track][-1]
        may_make[last] = made[before]
    return may_make


def _made_for_nothing(trace: Trace) -> Bool:
    """The ops that made an autograd node without a backward pass; if some nodes had one, only ops of one line.

    The line is the outermost from which nodes were made and none was used; of several, that with the most nodes. Four
    have to follow each other: a single op keeps nothing but its result.
    """
    made, is_backward = makes_node(trace), trace.phase == BACKWARD
    if not is_backward.any():
        return made
    nothing = np.zeros(len(trace), np.bool_)
    if np.any(is_backward & (trace.sequence_nr >= 0) & (trace.forward < 0)):
        return nothing  # it is not known which nodes these used
    used, chain, chains = _used(trace), attribution(trace).chain, attribution(trace).chains
    with_used = chains.with_callers(chain[used].tolist())
    numbers, counts = np.unique(chain[made & ~used & (chain >= 0)], return_counts=True)
    outermost = list(range(len(chains)))
    for node, caller in enumerate(chains.parents):
        if caller >= 0 and caller not in with_used:
            outermost[node] = outermost[caller]
    unused: dict[int, list[int]] = {}
    for node in numbers.tolist():
        if node not in with_used:
            unused.setdefault(outermost[node], []).append(node)
    nodes = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    if not unused:
        return nothing
    most = max(unused.values(), key=lambda chains: sum(nodes[one] for one in chains))
    for_nothing = made & ~used & np.isin(chain, most)
    in_a_row = np.convolve(for_nothing[made | used], np.ones(_LEAST_NODES, np.int64))
    return for_nothing if in_a_row.max() >= _LEAST_NODES else nothing


def _among(trace: Trace, made: Bool) -> Bool:
    """The ops between two ops of `made`: a node may keep what they made, such as the mask of a dropout."""
    between, is_other = np.zeros(len(trace), np.bool_), makes_node(trace) & ~made
    outer = outermost_ops(trace)
    for run in runs_of_equal(trace.track[outer]):
        rows = outer[run]
        turns = np.flatnonzero(made[rows] | is_other[rows])
        after = np.searchsorted(turns, np.arange(len(rows)))
        is_inner = (after > 0) & (after < len(turns))
        around = turns[after[is_inner] - 1], turns[after[is_inner]]
        between[rows[is_inner]] = made[rows[around[0]]] & made[rows[around[1]]]
    return between


def _used(trace: Trace) -> Bool:
    """The ops whose autograd node had a backward pass."""
    return is_among(trace, trace.forward[trace.phase == BACKWARD])


def makes_node(trace: Trace) -> Bool:
    """The ops that made an autograd node: after them, the sequence number of their thread is a higher one."""
    made, numbered = np.zeros(len(trace), np.bool_), _numbered(trace)
    for track in set(trace.track[numbered].tolist()):
        rows = numbered[trace.track[numbered] == track]
        made[rows[:-1]] = np.diff(trace.sequence_nr[rows]) > 0
    return made


def _numbered(trace: Trace) -> Int64:
    return np.flatnonzero(counted_ops(trace) & (trace.phase == FORWARD) & (trace.sequence_nr >= 0))


def _common_line(trace: Trace, made: Bool) -> SourceLine | None:
    """The innermost line from which all these nodes, and none with a backward pass, were made.

    Without such a line, the outermost line of the first node.
    """
    caused = attribution(trace)
    known = sorted({chain for chain in caused.chain[made].tolist() if chain >= 0})
    if not known:
        return None
    chains = [caused.chains.innermost_first(chain)[::-1] for chain in known]
    used = caused.chains.with_callers(caused.chain[_used(trace)].tolist())
    trained = {caused.chains.line_of[node] for node in used}
    common = [level[0] for level in zip(*chains, strict=False) if len(set(level)) == 1]
    return caused.lines[next((line for line in common[::-1] if line not in trained), chains[0][0])]
