"""Ascend's `trace_view.json`: the process of a span shows what it is, and flows lead to kernels."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from mtprof_nb.model.device_facts import KERNELS_OF_COLLECTIVES
from mtprof_nb.model.kineto_kinds import LEFT_OUT
from mtprof_nb.model.schema import Columns, Int8, Int32, Int64
from mtprof_nb.model.trace import COLLECTIVE, COPY, DEVICE_SCOPE, KERNEL, OP, RUNTIME, SET, SYNC
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.columns.file_links import flows_to_devices, rows_at
from mtprof_nb.reading.columns.file_tracks import DeviceNumbers, Lane
from mtprof_nb.reading.dialects import kineto
from mtprof_nb.reading.dialects.dialect import Dialect
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.descriptions import Descriptions
from mtprof_nb.reading.spans.spans import Spans

_HARDWARE, _COMMUNICATION, _RUNTIME, _OVERLAP = "Ascend Hardware", "HCCL", "CANN", "Overlap Analysis"
_COMMUNICATIONS = (_COMMUNICATION, "Communication")
_PROGRAM = "Python"
_DEVICE_BITS = 31
_NAMES = {_HARDWARE, _COMMUNICATION, _RUNTIME, _OVERLAP}
#: Beginnings of names of tasks that move memory, and of tasks that wait.
_COPIES, _SETS = ("MEMCPY", "SDMA", "Memcpy"), ("MEMSET", "Memset")
_WAITS = ("EVENT_", "NOTIFY", "Notify", "Write Value", "CAPTURE_", "MODEL_", "PROFILER_", "PROFILING_")
#: Flows from an op to its tasks on the device, and from the call that sent a task.
_OF_OPS, _OF_CALLS = ("async_npu",), ("HostToDevice",)
_NAME_OF_COLLECTIVE = re.compile(r"hcom_([a-z]+)_*(\d*)_", re.IGNORECASE)
_TYPES = {"FP32": "float", "FP16": "half", "BFP16": "bfloat16", "BF16": "bfloat16", "INT32": "int", "INT64": "long"}
#: The profiler writes the rank into the name of a file in the folder above that of the trace.
_OUTPUT, _INFO = "ASCEND_PROFILER_OUTPUT", re.compile(r"profiler_info_(\d{1,9})\.json")
_TASKS_OF_COLLECTIVES = ("SDMA", "Write Value", "Notify Wait", "RDMASend", "Reduce_Inline", "Memcpy")


def _device(pid: Int64) -> Int64:
    """The index of a device: the last bits of the number that Ascend's profiler gives to a process."""
    return pid & _DEVICE_BITS


def _threads(collector: Collector, spans: Spans, _: Int8, described: Descriptions) -> tuple[Spans, list[Lane]]:
    """The spans and lanes, in which threads of the runtime are the threads of the program that they are."""
    program = next((pid for pid, name in described.process_names.items() if name == _PROGRAM), None)
    if program is None:
        return spans, list(collector.lanes)
    runtimes = {pid for pid, name in described.process_names.items() if name == _RUNTIME}
    return spans, [(program, tid) if _is_key(pid) and pid in runtimes else (pid, tid) for pid, tid in collector.lanes]


def _recognise(described: Descriptions) -> bool:
    """Whether a file was written by Ascend's profiler."""
    return any(name in _NAMES for name in described.process_names.values())


def _kinds(collector: Collector, spans: Spans, described: Descriptions, tally: Counter[str]) -> Int8:
    """The kind of each span, `LEFT_OUT` for spans that repeat others."""
    kind = kineto.kinds(collector, spans, described, Counter())
    process = [described.process_names.get(pid, "") if _is_key(pid) else "" for pid, _ in collector.lanes]
    number_of = [_PROCESSES.index(name) if name in _PROCESSES else -1 for name in process]
    of_span = np.array([*number_of, -1]).take(spans["lane"])
    for number, name in enumerate(_PROCESSES):
        rows = np.flatnonzero(of_span == number)
        if name == _HARDWARE:
            kind[rows] = np.array([_task(text) for text in collector.names], np.int8)[spans["name"][rows]]
        elif name in _COMMUNICATIONS:
            kind[rows] = np.array([_communication(text) for text in collector.names], np.int8)[spans["name"][rows]]
        elif name == _RUNTIME:
            kind[rows] = RUNTIME
        elif name == _OVERLAP:
            kind[rows] = LEFT_OUT
            tally["Rows of the vendor's overlap analysis, left out"] += len(rows)
    if (kind == COLLECTIVE).any():
        # Tasks that a collective consists of: its own span has their time.
        is_task = spans.where("name", (name in _TASKS_OF_COLLECTIVES for name in collector.names))
        kind[is_task & (of_span == _PROCESSES.index(_HARDWARE))] = DEVICE_SCOPE
    kind[spans.where("category", (one in ("enqueue", "dequeue") for one in collector.categories))] = RUNTIME
    return kind


_PROCESSES = (_HARDWARE, *_COMMUNICATIONS, _RUNTIME, _OVERLAP)


def _task(name: Any) -> int:
    text = str(name)
    if text.startswith(_COPIES):
        return COPY
    if text.startswith(_SETS):
        return SET
    return SYNC if text.startswith(_WAITS) else KERNEL


def _communication(name: Any) -> int:
    """A collective, or one of the tasks that it consists of, which are no work besides."""
    return COLLECTIVE if str(name).lower().startswith(KERNELS_OF_COLLECTIVES) else DEVICE_SCOPE


def _is_key(pid: Any) -> bool:
    return isinstance(pid, int | str)


def _launches(file: ChosenSpans) -> Columns:
    """`launch` and `launcher` of each span."""
    launcher, launch = np.full((2, len(file)), -1, np.int32)
    pairs, ends = flows_to_devices(file, _OF_OPS)
    track = file.host_tracks[pairs["begin_lane"]]
    ops = rows_at(file.tracks.track, file.spans["start_ns"], np.flatnonzero(file.kind == OP), track, pairs["begin_ns"])
    launcher[ends[ends >= 0]] = ops[ends >= 0]
    pairs, ends = flows_to_devices(file, _OF_CALLS)
    calls = file.intervals.running(file.kind == RUNTIME, _thread_tracks(file, pairs["begin_lane"]), pairs["begin_ns"])
    launch[ends[ends >= 0]] = calls[ends >= 0]
    # A call is of the op whose task it sent, or of the op around it.
    around = file.intervals.running(file.kind == OP, file.tracks.track, file.spans["start_ns"])
    launcher = np.where(file.kind == RUNTIME, around, launcher).astype(np.int32)
    sent = np.flatnonzero((launch >= 0) & (launcher >= 0))
    lonely = sent[launcher[launch[sent]] < 0]
    launcher[launch[lonely]] = launcher[lonely]
    # A task without an op of its own is of the op whose call sent it.
    launcher = np.where((launcher < 0) & (launch >= 0), launcher[launch], launcher)
    return {"launch": launch, "launcher": launcher}


def _thread_tracks(file: ChosenSpans, lanes: Int32) -> Int32:
    """The track of each lane's thread: of any process, for threads of the runtime are threads of the program."""
    by_number = {track.native_id: number for number, track in enumerate(file.tracks.tracks) if track.kind == "thread"}
    tracks = [by_number.get(tid, -1) if isinstance(tid, int) else -1 for _, tid in file.collector.lanes]
    return np.array([*tracks, -1], np.int32)[lanes]


def _in_words_of_kineto(name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Members of `args`, and for a collective its name, group, type and size under Kineto's keys."""
    match = _NAME_OF_COLLECTIVE.match(name)
    if match is None:
        return members
    count = members.get("count")
    kind = str(members.get("data_type", "")).strip('"')
    sizes = {} if count is None else {"In msg nelems": count, "Out msg nelems": count}
    named = {"Collective name": json.dumps(match[1].lower()), "Process Group Name": json.dumps(match[2])}
    return {**members, **named, "dtype": json.dumps(_TYPES.get(kind, kind.lower())), **sizes}


def _rank_beside(path: Path) -> int | None:
    """The rank in the name of the one `profiler_info_N.json` that belongs to a `trace_view.json`."""
    folder = path.absolute().parent
    folders = (folder, folder.parent) if folder.name == _OUTPUT else (folder,)
    for one in folders:
        ranks = {int(match[1]) for file in one.iterdir() if (match := _INFO.fullmatch(file.name))}
        if ranks:
            return ranks.pop() if len(ranks) == 1 else None
    return None


ASCEND = Dialect(
    recognise=_recognise,
    kinds=_kinds,
    numbers=lambda _, __: DeviceNumbers("NPU", _device),
    launches=_launches,
    threads=_threads,
    extras=_in_words_of_kineto,
    rank_beside=_rank_beside,
)
