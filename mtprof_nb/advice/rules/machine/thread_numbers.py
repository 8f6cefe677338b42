"""Products that are computed with fewer threads than there are cores, or with more than there are processors."""

from __future__ import annotations

import re

from mtprof_nb.advice.causes.recorded_threads import products, recorded_threads
from mtprof_nb.advice.causes.source_text import code_has
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.program_time.data_loading import loader_calls
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, recorded_ns, slowest_line
from mtprof_nb.analysis.program_time.spent_time import spent_ns
from mtprof_nb.model.trace import Trace

#: Products from this length on are large: a shorter one may be too small to be divided.
_LARGE_NS, _LARGE_SHARE = 1_000_000, 0.5
#: Products below this length run on one thread.
_SHORT_NS, _SHORT_SHARE = 20_000, 0.3
#: A few threads more than processors cost little.
_TIMES_MORE = 2
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: Words of a program that chooses the number itself.
_CHOICE = re.compile("|".join(("set_num_threads", *_VARIABLES)))


@rule
def too_few_threads(trace: Trace) -> Finding | None:
    """Find products and convolutions of 1 ms or more, half of the time, with fewer threads than there are free cores.

    Silent where the other cores may have work: for a process of a distributed program, with workers of a DataLoader
    or threads of the program, and on a busy machine; and where the recorded source chooses the number.
    """
    counts, chosen = recorded_threads(trace), products(trace, _LARGE_NS)
    if counts is None or not chosen.any() or trace.on_device.any() or _is_shared(trace):
        return None
    free = int(counts.cores - max(counts.load, counts.threads))
    ns, tracks = spent_ns(trace, chosen), set(trace.track[chosen].tolist())
    if counts.load < 0 or free < 1 or ns < _LARGE_SHARE * recorded_ns(trace) or len(tracks) > 1:
        return None
    if code_has(trace, trace.sources, _CHOICE):
        return None
    set_by = f" The environment variable {counts.set_by} sets their number." if counts.set_by in _VARIABLES else ""
    return Finding(
        "Large products are computed with fewer threads than there are cores",
        f"{units.plural(int(chosen.sum()), 'product')} of 1 ms or more take {of_recorded(trace, ns)}, with "
        f"{units.plural(counts.threads, 'thread')}; the process may use "
        f"{units.plural(counts.cores, 'core')}, {free} of them free.{set_by}",
        f"torch.set_num_threads({counts.threads + free})",
        slowest_line(trace, chosen),
        found_ns=ns * free // (counts.threads + free),
        # Other ops divide their work, too, as far as they can.
        at_most_ns=spent_ns(trace, counted_ops(trace)) * free // (counts.threads + free),
    )


@rule
def too_many_threads(trace: Trace) -> Finding | None:
    """Find products below 1 ms, 30 % of the time, with twice as many threads as the process may use processors.

    This is so in a container that may use a part of the machine: torch counts the processors of the whole machine.
    Measured with 1 and 2 processors, products of 32 to 256 rows took from 1.2 to 20 times as long as with as many
    threads as processors; larger ones, from 1.1 to 1.6 times.
    """
    counts, chosen = recorded_threads(trace), products(trace, _SHORT_NS, _LARGE_NS)
    if counts is None or trace.on_device.any() or counts.threads < _TIMES_MORE * counts.processors:
        return None
    ns = spent_ns(trace, chosen)
    if ns < _SHORT_SHARE * recorded_ns(trace):
        return None
    return Finding(
        "Products are computed with more threads than there are processors",
        f"{units.plural(counts.threads, 'thread')} share {units.plural(counts.processors, 'processor')}, and wait for "
        f"each other; {units.plural(int(chosen.sum()), 'product')} of under 1 ms take {of_recorded(trace, ns)}.",
        f"torch.set_num_threads({counts.processors})  # or OMP_NUM_THREADS={counts.processors} for the process",
        slowest_line(trace, chosen),
        found_ns=ns,
        at_most_ns=spent_ns(trace, counted_ops(trace)),  # other ops share the processors, too
    )


def _is_shared(trace: Trace) -> bool:
    """Whether other processes of the program may need the cores."""
    has_workers = any("_MultiProcessing" in trace.names[name] for name in set(trace.name[loader_calls(trace)].tolist()))
    return has_workers or trace.processes[0].rank >= 0
