"""Garbage collections that take a part of the time."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.causes.collector_time import collected_ns, collections_outside_imports, line_of_collections
from mtprof_nb.advice.causes.source_text import line_has
from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, recorded_ns
from mtprof_nb.model.trace import Collections, Trace

_FIX = """\
import gc
gc.freeze()  # once before the loop: objects that are there already are not looked at again
# if the loop itself makes many objects: gc.disable(), and gc.collect() every few hundred steps"""
_FIX_CALLED = "# call gc.collect() once after the loop, or every few hundred steps"
_LEAST_SHARE = 0.05
_CALL = re.compile(r"\bgc\.collect\(")


@rule
def garbage_collections(trace: Trace) -> Finding | None:
    """Find collections of Python's garbage collector; each looks at many objects again, whether or not one is garbage.

    They have to recur: 5 % of each half of the recording, without the longest one there. Each process has a long one
    now and then. Imports have many, which do not count. A hook written in Python makes objects itself, which start
    collections: there the rule is silent.
    """
    collections = collections_outside_imports(trace)
    ns = collected_ns(collections)
    if collections is None or not ns or trace.between_ops_ns or not _recur(trace, collections):
        return None
    line = line_of_collections(trace, collections)
    is_called = line_has(trace, line, _CALL)
    whole = int(np.count_nonzero(collections.generation == 2))
    on_line = "; at least half of it on this line" if line else ""
    return Finding(
        "gc.collect() is called here" if is_called else "Python's garbage collector takes a part of the time",
        f"{units.plural(len(collections), 'garbage collection')}, {units.number(whole)} of them of all objects, take "
        f"{of_recorded(trace, ns)}, the longest "
        f"{units.duration(int(collections.duration_ns.max()))}{on_line}.",
        _FIX_CALLED if is_called else _FIX,
        line,
        at_most_ns=ns,
        certainty=CERTAIN,
    )


def _recur(trace: Trace, collections: Collections) -> bool:
    """Whether collections take a part of both halves of the recording, also without the longest one of each."""
    is_late = collections.start_ns >= (trace.began_ns + trace.ended_ns) // 2
    halves = (collections.duration_ns[~is_late], collections.duration_ns[is_late])
    least_ns = _LEAST_SHARE * recorded_ns(trace) / 2
    return all(half.sum() - half.max(initial=0) >= least_ns for half in halves)
