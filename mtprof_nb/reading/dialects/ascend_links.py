"""Launches of Ascend's kernels, from the flows of its `trace_view.json`, and its collectives in Kineto's words."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Columns, Int32
from mtprof_nb.model.trace import OP, RUNTIME
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans
from mtprof_nb.reading.columns.file_launches import flows_to_devices
from mtprof_nb.reading.columns.file_links import rows_at

#: Flows from an op to its tasks on the device, and from the call that sent a task.
_OF_OPS, _OF_CALLS = ("async_npu",), ("HostToDevice",)
_COLLECTIVE = re.compile(r"hcom_([a-z]+)_*(\d*)_", re.IGNORECASE)
_TYPES = {"FP32": "float", "FP16": "half", "BFP16": "bfloat16", "BF16": "bfloat16", "INT32": "int", "INT64": "long"}


def launches(file: ChosenSpans) -> Columns:
    """`launch` and `launcher` of each span."""
    launcher, launch = _empty(file), _empty(file)
    pairs, ends = flows_to_devices(file, _OF_OPS)
    track = file.host_tracks[pairs["begin_lane"]]
    ops = rows_at(file.tracks.track, file.spans["start_ns"], np.flatnonzero(file.kind == OP), track, pairs["begin_ns"])
    launcher[ends[ends >= 0]] = ops[ends >= 0]
    pairs, ends = flows_to_devices(file, _OF_CALLS)
    calls = file.intervals.running(file.kind == RUNTIME, _threads(file, pairs["begin_lane"]), pairs["begin_ns"])
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


def _empty(file: ChosenSpans) -> Int32:
    return np.full(len(file), -1, np.int32)


def _threads(file: ChosenSpans, lanes: Int32) -> Int32:
    """The track of each lane's thread: of any process, for threads of the runtime are threads of the program."""
    by_number = {track.native_id: number for number, track in enumerate(file.tracks.tracks) if track.kind == "thread"}
    found = [by_number.get(tid, -1) if isinstance(tid, int) else -1 for _, tid in file.collector.lanes]
    return np.array([*found, -1], np.int32)[lanes]


def in_words_of_kineto(name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Members of `args`, and for a collective its name, group, type and size under Kineto's keys."""
    match = _COLLECTIVE.match(name)
    if match is None:
        return members
    count = members.get("count")
    kind = str(members.get("data_type", "")).strip('"')
    sizes = {} if count is None else {"In msg nelems": count, "Out msg nelems": count}
    named = {"Collective name": json.dumps(match[1].lower()), "Process Group Name": json.dumps(match[2])}
    return {**members, **named, "dtype": json.dumps(_TYPES.get(kind, kind.lower())), **sizes}
