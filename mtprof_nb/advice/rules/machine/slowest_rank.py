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
    found = straggler(trace)
    if found is None:
        return None
    return Finding(
        f"The other ranks wait for {found.title}",
        units.sentence(str(found)),
        _FIX,
        found.slower.line if found.slower else None,
        at_most_ns=found.waited_for_ns,
    )
