"""Values that the host fetches from a device, again and again, and waits for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis import units
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.devices.idle_gaps import is_synchronising
from mtprof_nb.analysis.nesting import is_among
from mtprof_nb.analysis.program_time.recorded_time import line_of_longest, of_recorded, recorded_ns
from mtprof_nb.analysis.program_time.spent_time import with_nested
from mtprof_nb.model.intervals import covered_length
from mtprof_nb.model.trace import COPY, Bool, Int64, Trace

_LEAST_CALLS = 4
#: A device that is busy throughout would not be faster if the host did not wait.
_LEAST_IDLE = 0.1


class _Fetch(NamedTuple):
    """A way to fetch values: in words, the ops that do it, and what to write instead."""

    words: str
    ops: tuple[str, ...]
    fix: str


_ITEM = _Fetch(
    ".item(), float(), if or print of a tensor",
    ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"),
    "total += loss.detach()  # stays on the device\nprint(total.item())  # once, after the loop",
)
_NONZERO = _Fetch(
    "nonzero(), or a boolean mask as an index",
    ("aten::nonzero", "aten::masked_select"),
    "y = torch.where(mask, x, 0)  # instead of x[mask]: its size is known without looking at the values",
)
_COPY = _Fetch(
    "copies to the host, such as .cpu()",
    (),
    "kept.append(y)  # stays on the device\nresult = torch.stack(kept).cpu()  # once, after the loop",
)


@rule
def waits_for_values(trace: Trace) -> Finding | None:
    """Find values fetched from a device at least four times, where all devices are idle for a part of their spans.

    Neither can the program become shorter than the work of a device, nor can more than the waiting be saved.
    """
    figures = device_figures(trace)
    calls = np.flatnonzero(is_synchronising(trace))
    if not len(calls) or not figures or any(one.idle_ns < _LEAST_IDLE * one.span_ns for one in figures):
        return None
    fetch, calls = max(_by_fetch(trace, calls), key=lambda pair: _length(trace, pair[1]))
    if len(calls) < _LEAST_CALLS:
        return None
    waits_ns, busy_ns = _length(trace, calls), max(one.busy_ns for one in figures)
    return Finding(
        "The host waits for values from the device",
        f"{units.plural(len(calls), 'time')} the host waits in {fetch.words}: {of_recorded(trace, waits_ns)}; "
        f"the device is busy for {units.duration(busy_ns)}.",
        fetch.fix,
        line_of_longest(trace, calls),
        at_most_ns=max(min(waits_ns, recorded_ns(trace) - busy_ns), 0),
        certainty=CERTAIN,
    )


def _by_fetch(trace: Trace, calls: Int64) -> list[tuple[_Fetch, Int64]]:
    """The calls inside each way to fetch values; a call counts for the first way."""
    by_fetch, left = [], calls
    for fetch in (_ITEM, _NONZERO, _COPY):
        ops = trace.where_name(fetch.ops.__contains__) if fetch.ops else _copying_to_host(trace)
        inside = with_nested(trace, ops)[left]
        by_fetch.append((fetch, left[inside]))
        left = left[~inside]
    return by_fetch


def _copying_to_host(trace: Trace) -> Bool:
    """The ops that launched a copy from a device to the host."""
    copies = (trace.kind == COPY) & trace.where_name(lambda name: "DtoH" in name or "DeviceToHost" in name)
    return is_among(trace, () if trace.launcher is None else trace.launcher[copies])


def _length(trace: Trace, calls: Int64) -> int:
    return covered_length(trace.start_ns[calls], trace.end_ns[calls])
