"""Short products that are computed with more threads than there are processors."""

from __future__ import annotations

from mtprof_nb.advice.causes.recorded_threads import products, recorded_threads
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns, slowest_line
from mtprof_nb.analysis.program_time.spent_time import spent_ns
from mtprof_nb.model.trace import Trace

#: Shorter products run on one thread, and longer ones lose little.
_LEAST_NS, _LIMIT_NS = 20_000, 1_000_000
_LEAST_SHARE = 0.3
#: A few threads more than processors cost little.
_TIMES_MORE = 2


@rule
def too_many_threads(trace: Trace) -> Finding | None:
    """Find products below 1 ms, 30 % of the time, with twice as many threads as the process may use processors.

    This is so in a container that may use a part of the machine: torch counts the processors of the whole machine.
    Measured with 1 and 2 processors, products of 32 to 256 rows took from 1.2 to 20 times as long as with as many
    threads as processors; larger ones, from 1.1 to 1.6 times.
    """
    counts, chosen = recorded_threads(trace), products(trace, _LEAST_NS, _LIMIT_NS)
    if counts is None or trace.on_device.any() or counts.threads < _TIMES_MORE * counts.processors:
        return None
    ns = spent_ns(trace, chosen)
    if ns < _LEAST_SHARE * recorded_ns(trace):
        return None
    return Finding(
        "Products are computed with more threads than there are processors",
        f"{units.plural(counts.threads, 'thread')} share {units.plural(counts.processors, 'processor')}, and wait for "
        f"each other; {units.plural(int(chosen.sum()), 'product')} of under 1 ms take {units.duration(ns)} of "
        f"{units.duration(recorded_ns(trace))}.",
        f"torch.set_num_threads({counts.processors})  # or OMP_NUM_THREADS={counts.processors} for the process",
        slowest_line(trace, chosen),
        found_ns=ns,
        at_most_ns=spent_ns(trace, counted_ops(trace)),  # other ops share the processors, too
    )
