"""Traces of Kineto, from 2021 on, and of torch's older exporter: a category is the kind of a span."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.building.closures import OF_OPTIMIZER
from mtprof_nb.building.interning import first_with_number
from mtprof_nb.building.phases import OF_LOADER
from mtprof_nb.model.collective_calls import SCOPES_OF_COLLECTIVES
from mtprof_nb.model.kineto_kinds import ON_DEVICE, kind_of_activity
from mtprof_nb.model.schema import Bool, Columns, Int8, Int32
from mtprof_nb.model.trace import COPY, KERNEL, OP, RUNTIME, SCOPE, STEP_PREFIX, SYNC
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.columns.file_links import flows_to_devices, rows_at
from mtprof_nb.reading.columns.file_tracks import DeviceNumbers, Lane
from mtprof_nb.reading.dialects.dialect import Dialect
from mtprof_nb.reading.spans.collector import LAUNCH_FLOWS, Collector
from mtprof_nb.reading.spans.descriptions import Descriptions
from mtprof_nb.reading.spans.spans import Spans

#: So many notes at most name a category each.
_MOST_NAMED = 12
#: Tasks of MTIA devices that are no kernels.
_TASKS_OF_MTIA = {"dma_request": COPY, "event_record": SYNC, "event_wait": SYNC}
#: A process that is a device.
_DEVICE_LABEL = re.compile(r"(GPU|CUDA|MTIA|XPU|NPU|HPU|MLU|GCU|MUSA) \d+")
#: Processes of torch's older exporter, whose events have no category.
_OLD_PROCESSES = {"CPU functions": OP, "CUDA functions": KERNEL}
#: Types of devices by the beginnings of categories; all others are CUDA devices, as PyTorch calls those of AMD too.
_DEVICES = {
    "xpu_": "XPU",
    "mtia_": "MTIA",
    "privateuse1_": "NPU",
    "hpu_": "HPU",
    "mlu_": "MLU",
    "gcu_": "GCU",
    "musa_": "MUSA",
}
#: Names of scopes that older recordings have among the ops.
_SCOPES = (STEP_PREFIX, OF_OPTIMIZER, OF_LOADER, *SCOPES_OF_COLLECTIVES)
#: Waits of the host, which Kineto writes to process -1, and calls that devices of one maker share with the host.
_WAITS_OF_HOST, _OF_HOST_OR_DEVICE = "xpu_sync", "hpu_op"


def kinds(collector: Collector, spans: Spans, described: Descriptions, tally: Counter[str]) -> Int8:
    """The kind of each span, `LEFT_OUT` for spans of the recording itself. Unknown categories are scopes."""
    known = [kind_of_activity(str(category)) for category in collector.categories]
    of_category = [SCOPE if kind is None else kind for kind in known]
    kind_of: Int8 = np.array(of_category, np.int8)[spans["category"]]
    counts = np.bincount(spans["category"], minlength=len(known)).tolist()
    for number, (category, kind) in enumerate(zip(collector.categories, known, strict=True)):
        if kind is None and category in ("", None):
            here = np.flatnonzero(spans["category"] == number)
            kind_of[here] = _without_category(collector, spans["lane"][here])
        elif kind is None and counts[number]:
            what = f"the unknown category {str(category)[:40]!r}" if len(tally) < _MOST_NAMED else "more categories"
            tally[f"Events of {what}, shown as scopes"] += counts[number]
    is_scope = spans.where("name", (isinstance(name, str) and name.startswith(_SCOPES) for name in collector.names))
    kind_of[(kind_of == OP) & is_scope] = SCOPE
    for name, kind in _TASKS_OF_MTIA.items():
        if name in collector.names:
            kind_of[(kind_of == KERNEL) & (spans["name"] == collector.names[name])] = kind
    lane = spans["lane"]
    if _OF_HOST_OR_DEVICE in collector.categories:
        shared = spans["category"] == collector.categories[_OF_HOST_OR_DEVICE]
        kind_of[shared & _in_processes(_with_ops(collector, lane, kind_of), collector, spans)] = RUNTIME
    labels = {**described.process_names, **described.labels}
    named = {pid for pid, _ in collector.lanes if _DEVICE_LABEL.fullmatch(labels.get(pid, ""))}
    # The first process of a container has the number of a device, and ops.
    on_device = _in_processes(named - _with_ops(collector, lane, kind_of), collector, spans)
    for host, device in ON_DEVICE.items():
        kind_of[(kind_of == host) & on_device] = device
    return kind_of


def _with_ops(collector: Collector, lane: Int32, kind: Int8) -> set[Any]:
    """The processes that have ops."""
    lanes = list(collector.lanes)
    return {lanes[number][0] for number in np.unique(lane[kind == OP]).tolist()}


def _in_processes(pids: Collection[Any], collector: Collector, spans: Spans) -> Bool:
    return spans.where("lane", (pid in pids for pid, _ in collector.lanes))


def _threads(collector: Collector, spans: Spans, kind: Int8, _: Descriptions) -> tuple[Spans, list[Lane]]:
    """The spans and lanes, with waits of the host on the threads that waited: Kineto gives no process."""
    if _WAITS_OF_HOST not in collector.categories:
        return spans, list(collector.lanes)
    lanes, lane = list(collector.lanes), spans["lane"].copy()
    calls = np.bincount(lane[(kind == OP) | (kind == RUNTIME)], minlength=len(lanes)).tolist()
    of_process: Counter[Any] = Counter()
    for (pid, _), count in zip(lanes, calls, strict=True):
        of_process[pid] += 0 if _is_nowhere(pid) else count
    program = of_process.most_common(1)[0][0]
    is_wait = spans["category"] == collector.categories[_WAITS_OF_HOST]
    for number in np.unique(lane[is_wait]).tolist():
        if _is_nowhere(lanes[number][0]) and not _is_nowhere(program):
            lane[is_wait & (lane == number)] = collector.lanes[program, lanes[number][1]]
    return replace(spans, columns=spans.columns | {"lane": lane}), list(collector.lanes)


def _is_nowhere(pid: Any) -> bool:
    return isinstance(pid, int) and pid < 0


def _without_category(collector: Collector, lanes: Int32) -> Int8:
    """Spans without a category are ops, on the host unless their process is that of a device."""
    by_lane = [_OLD_PROCESSES.get(pid, OP) if isinstance(pid, str) else OP for pid, _ in collector.lanes]
    return np.array(by_lane, np.int8).take(lanes)


def _numbers(collector: Collector, _: Descriptions) -> DeviceNumbers:
    """The type of device that the events of a file ran on, by its categories."""
    names = [str(category).lower() for category in collector.categories]
    devices = [device for begin, device in _DEVICES.items() if any(name.startswith(begin) for name in names)]
    return DeviceNumbers(devices[0] if devices else "CUDA")


def launches(file: ChosenSpans) -> Columns:
    """`launch` and `launcher` of each span."""
    kind, on_device = file.kind, file.on_device
    correlation = file.within_processes(file.spans["correlation"])
    external = file.within_processes(file.spans["external"])
    is_call = kind == RUNTIME
    launch = first_with_number(correlation, np.flatnonzero(is_call), correlation, on_device & (correlation > 0))
    by_flow = _by_flows(file)
    launch = np.where(launch >= 0, launch, by_flow["launch"])
    # Older recordings repeat the number of the call in place of the op's.
    has_own = (external > 0) & (external != correlation) & (is_call | on_device)
    among = np.flatnonzero((kind == OP) | (kind == SCOPE))
    launcher = first_with_number(external, among, external, has_own)
    lacking = np.flatnonzero(is_call & (launcher < 0))
    launcher[lacking] = file.intervals.running(kind == OP, file.tracks.track[lacking], file.spans["start_ns"][lacking])
    of_launch = np.where(launch >= 0, launcher[launch], -1)
    launcher = np.where(on_device & (launcher < 0), np.where(of_launch >= 0, of_launch, by_flow["launcher"]), launcher)
    return {"launch": launch, "launcher": launcher}


def _by_flows(file: ChosenSpans) -> Columns:
    """The call, or the op, at which the flow to each event of a device begins: for files without other numbers."""
    pairs, ends = flows_to_devices(file, tuple(LAUNCH_FLOWS))
    track, start_ns = file.host_tracks[pairs["begin_lane"]], file.spans["start_ns"]
    columns: Columns = {}
    for name, kind in (("launch", RUNTIME), ("launcher", OP)):
        begins = rows_at(file.tracks.track, start_ns, np.flatnonzero(file.kind == kind), track, pairs["begin_ns"])
        columns[name] = np.full(len(file), -1, np.int32)
        columns[name][ends[ends >= 0]] = begins[ends >= 0]
    return columns


KINETO = Dialect(lambda _: True, kinds, _numbers, launches, threads=_threads)
