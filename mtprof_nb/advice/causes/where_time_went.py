"""A sentence on where the time of a recording went, and what the program waited for."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import numpy as np

from mtprof_nb.advice.causes.collector_time import collected_ns
from mtprof_nb.advice.causes.preparations import COMPILING, preparation_ns
from mtprof_nb.analysis import units
from mtprof_nb.analysis.compiled import compilations, compiled_sentence
from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.devices.device_figures import device_figures
from mtprof_nb.analysis.devices.who_waits import are_busy, devices_title, work_throughout
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.data_loading import loader_calls
from mtprof_nb.analysis.program_time.recorded_time import (
    device_phases_ns,
    line_device_times,
    line_times,
    program_ns,
    whose_time,
)
from mtprof_nb.analysis.program_time.spent_time import apart_from
from mtprof_nb.analysis.ranks.stragglers import straggler
from mtprof_nb.analysis.summary import covered_part, summary, wall_ns
from mtprof_nb.model.source_files import file_label
from mtprof_nb.model.trace import SourceLine, Trace

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")

_PARTS = {
    "forward": "is the forward pass",
    "backward": "is the backward pass",
    "optimizer": "is the optimizer",
    "other": "is in ops of neither forward pass, backward pass nor optimizer",
    "compiling": "is compiling",
    "ops": "is spent in ops",
    "outside": "passed outside ops",
}
#: A line is named in the sentence from this share of the whole on.
_NAMED_LINE = 0.2
#: A line with this share explains little, such as one that calls a trainer: a module is named too.
_EXPLAINS_LITTLE = 0.8
#: Garbage collections and preparations are listed from this share of the wall time on: each program has some.
_LEAST_SHARE = 0.05
#: A wait is named in the sentence from this share of the time outside ops on.
_MOSTLY = 0.5
_NEXT, _COLLECTIONS = "DataLoader's next", "garbage collections"


class Waiting(NamedTuple):
    """Something that the program waited for, and how long."""

    title: str
    ns: int


def where_time_went(trace: Trace) -> str:
    """As "73 % of this cell is the backward pass; Cell [3]:4 causes 58 % of the whole"; without ops the line alone.

    Where the host waits for devices, the sentence is about the time on these: the host's ops only wait.
    Of several ranks, the one that the others waited for comes first, with the evidence. The sentence about a recording
    that was full begins with the part of the run that it covers.
    """
    named, part = straggler(trace), covered_part(trace)
    sentences = (
        f"This recording covers {part}." if part else "",
        units.sentence(str(named or "")),
        where_device_time_went(trace) or _parts(trace),
        compiled_sentence(trace),
    )
    return " ".join(filter(None, sentences))


@once_a_trace
def where_device_time_went(trace: Trace) -> str:
    """As "61 % of the time on the GPU is the backward pass; train.py:8 causes 42 % of it"; "" if neither is known.

    It is "" as well unless devices of one process are busy, throughout the recording or while the host waits for them
    most of the time that is known: then the host's own time does not count. Where they mostly communicate, and compute
    nothing meanwhile, neither a phase nor a line is the reason.
    """
    if len(trace.processes) > 1 or not are_busy(trace):
        return ""
    figures = device_figures(trace)
    waiting_ns = max(one.host_waiting_ns for one in figures)
    if not work_throughout(trace) and waiting_ns < _MOSTLY * program_ns(trace):
        return ""
    busy_ns = sum(one.busy_ns for one in figures)
    exposed_ns = sum(one.exposed_communication_ns for one in figures)
    if exposed_ns > _MOSTLY * busy_ns:
        busy = f"{exposed_ns / busy_ns * 100:.0f} % of the busy time of {devices_title(trace)}"
        return f"{busy} is communication that no computing hides."
    whole, within = summary(trace).device_ns or 0, f"the time on {devices_title(trace)}"
    line, ns = max(line_device_times(trace).items(), key=lambda pair: pair[1], default=(None, 0))
    cause = f"{_named(trace, line)} causes {ns / whole * 100:.0f} % of" if ns >= _NAMED_LINE * whole else ""
    parts = _passes(device_phases_ns(trace))
    if "ops" in parts:
        return f"{cause} {within}." if cause else ""
    part = max(parts, key=lambda name: parts[name])
    most = f"{parts[part] / whole * 100:.0f} % of {within} {_PARTS[part]}"
    return f"{most}; {cause} it." if cause else f"{most}."


def _parts(trace: Trace) -> str:
    of, whole = summary(trace), program_ns(trace)
    if not whole:
        return ""
    within, knows_outside = _known_part(trace)
    line, ns = max(line_times(trace).items(), key=lambda pair: pair[1], default=(None, 0))
    is_named = whole >= ns >= _NAMED_LINE * whole
    cause = f"{_named(trace, line)} causes {ns / whole * 100:.0f} % of" if is_named else ""
    module = _module(trace, whole) if ns >= _EXPLAINS_LITTLE * whole else ""
    parts = {**_passes(of.phases_ns), "outside": whole - of.in_ops_ns}
    if not of.ops or (not knows_outside and "ops" in parts):
        return f"{cause} {within}{module}." if cause else ""
    part = max(parts, key=lambda name: parts[name])
    outside = _mostly(trace, parts[part]) if part == "outside" else ""
    most = f"{parts[part] / whole * 100:.0f} % of {within} {_PARTS[part]}{outside}"
    return f"{most}; {cause} {'that part' if covered_part(trace) else 'the whole'}{module}." if cause else f"{most}."


def _mostly(trace: Trace, outside_ns: int) -> str:
    """As ", mostly in imports", if a wait takes more than half of the time outside ops.

    Waits for devices are not asked: calls that wait are mostly inside ops.
    """
    ops, calls, collections = np.flatnonzero(counted_ops(trace)), loader_calls(trace), trace.collections
    waits = {_NEXT: apart_from(trace, ops, trace.start_ns[calls], trace.end_ns[calls]).sum()}
    if collections is not None:
        waits[_COLLECTIONS] = apart_from(trace, ops, collections.start_ns, collections.end_ns).sum()
    waits |= preparation_ns(trace, with_ops=False)
    title, ns = max(waits.items(), key=lambda pair: pair[1])
    return f", mostly in {title}" if ns > _MOSTLY * outside_ns else ", in Python code or waiting"


def _module(trace: Trace, whole: int) -> str:
    """As ", and GPT.blocks.*.mlp takes 41 %"; "" where no module has much of the time."""
    ((path, ns),) = module_times(trace).most_common(1) or [("", 0)]
    return f", and {path} takes {ns / whole * 100:.0f} %" if whole >= ns >= _NAMED_LINE * whole else ""


def _known_part(trace: Trace) -> tuple[str, bool]:
    """Of which part of the time a sentence can speak, and whether time outside ops is in it."""
    what, whose = "cell" if trace.cells else "recording", whose_time(trace)
    what = "the recorded part" if trace.unrecorded else f"this {what}"
    if whose == "threads":
        return "the recorded time" + (" of this cell" if trace.cells else ""), True
    return (what, True) if whose == "program" else (f"the time in ops of {what}", False)


def _passes(phases_ns: dict[str, int]) -> dict[str, int]:
    """The time of each phase; of a program that trains nothing, which has no passes, the time of all ops."""
    if phases_ns["backward"] or phases_ns["optimizer"]:
        return phases_ns
    compiling_ns = phases_ns["compiling"]
    return {"ops": sum(phases_ns.values()) - compiling_ns, "compiling": compiling_ns}


def _named(trace: Trace, line: SourceLine | None) -> str:
    return f"{file_label(trace, line.file)}:{line.line}" if line else "one line"


def waiting(trace: Trace) -> list[Waiting]:
    """Waits of the program, the longest first: for its DataLoader, its devices, garbage collections and preparations.

    Their times may overlap.
    """
    calls = loader_calls(trace)
    device_ns = max((one.host_waiting_ns for one in device_figures(trace)), default=0)
    waits = [
        Waiting(_NEXT, int(trace.duration_ns[calls].sum())),
        Waiting("synchronisation with the device", device_ns),
    ]
    now_and_then = {_COLLECTIONS: collected_ns(trace.collections), **preparation_ns(trace)}
    if compilations(trace):  # these are no wait, but a phase
        now_and_then.pop(COMPILING, None)
    least_ns = _LEAST_SHARE * wall_ns(trace)
    waits += [Waiting(title, ns) for title, ns in now_and_then.items() if ns >= least_ns]
    return sorted((one for one in waits if one.ns), key=lambda one: -one.ns)


def module_times(trace: Trace) -> Counter[str]:
    """The time in ops of each module itself, forward and backward; `x.0.y`, `x.1.y` and so on are `x.*.y`."""
    times_of: Counter[str] = Counter()
    if trace.module is not None:
        rows = np.flatnonzero(counted_ops(trace) & (trace.module >= 0))
        times = sums(trace.module[rows], op_costs(trace).self_ns[rows], len(trace.modules))
        for path, ns in zip(trace.modules, times.tolist(), strict=True):
            times_of[_NUMBER.sub("*", path)] += ns
    return times_of
