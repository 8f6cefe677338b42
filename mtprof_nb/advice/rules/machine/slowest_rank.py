"""One process that all others wait for."""

from __future__ import annotations

from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule_of_processes
from mtprof_nb.analysis import units
from mtprof_nb.analysis.ranks.stragglers import straggler
from mtprof_nb.model.trace import Trace

_FIX = """\
sampler = DistributedSampler(dataset)  # the same amount of work for each rank
# or look at what only this rank does: logging, saving, input"""


@rule_of_processes
def slowest_rank(trace: Trace) -> Finding | None:
    """Find the rank that comes last in most collectives, so that the others wait for it."""
    slowest = straggler(trace)
    if slowest is None:
        return None
    return Finding(
        f"The other ranks wait for {slowest.title}",
        units.sentence(str(slowest)),
        _FIX,
        slowest.slower.line if slowest.slower else None,
        at_most_ns=slowest.waited_for_ns,
    )
