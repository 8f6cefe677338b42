"""Traces of XLA's profiler, as JAX exports them: the name of a span's thread shows what it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from mtprof_nb.model.schema import Bool, Int8, Int32, Int64
from mtprof_nb.model.trace import COPY, DEVICE_SCOPE, KERNEL, OP, PYTHON, SCOPE, SET
from mtprof_nb.reading.columns.file_tracks import DeviceNumbers
from mtprof_nb.reading.dialects.dialect import Dialect
from mtprof_nb.reading.dialects.kineto import launches
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.descriptions import Descriptions
from mtprof_nb.reading.spans.spans import Spans

_DEVICE = re.compile(r"/device:(GPU|TPU):(\d{1,3})")
_HOST = "/host:"
#: Threads of a device with work. Other threads there repeat it by module, step, scope or line.
_STREAM, _OPS = "Stream #", "XLA Ops"
_TYPES = {"GPU": "CUDA", "TPU": "TPU"}
_WORK = {"memcpy": COPY, "memset": SET}
#: How names of Python calls begin.
_CALL = "$"
#: The member of a span that runs an instruction of a program.
_INSTRUCTION = '"hlo_op"'
#: Starts and lengths are in picoseconds: rounded each by itself, instructions that follow each other overlap by this.
_ROUNDING_NS = 1


def _recognise(described: Descriptions) -> bool:
    """Whether a file was written by XLA's profiler."""
    return any(name.startswith(_HOST) or _DEVICE.fullmatch(name) for name in described.process_names.values())


def _kinds(collector: Collector, spans: Spans, described: Descriptions, _: Counter[str]) -> Int8:
    """The kind of each span: work and scopes of devices, instructions and Python calls of the host, other calls."""
    lane = spans["lane"]
    kind = np.array([*_kinds_of_lanes(collector, described), SCOPE], np.int8).take(lane)
    runs_instruction = spans.where("rest", (_INSTRUCTION in text for text in collector.facts.rests))
    kind[(kind == SCOPE) & runs_instruction] = OP
    is_call = spans.where("name", (isinstance(name, str) and name.startswith(_CALL) for name in collector.names))
    kind[(kind == SCOPE) & is_call] = PYTHON
    of_name = [_work(str(name)) for name in collector.names]
    works = kind == KERNEL
    kind[works] = np.array(of_name or [KERNEL], np.int8)[spans["name"][works]]
    # On a TPU, a loop has a span around those of its instructions.
    kind[works & _is_around_another(lane, spans["start_ns"], spans["duration_ns"], works)] = DEVICE_SCOPE
    return kind


def _kinds_of_lanes(collector: Collector, described: Descriptions) -> list[int]:
    devices = {pid for pid, name in described.process_names.items() if _DEVICE.fullmatch(name)}
    with_streams = {pid for (pid, _), name in described.thread_names.items() if name.startswith(_STREAM)}
    kinds = []
    for pid, tid in collector.lanes:
        name = described.thread_names.get((pid, tid), "")
        has_work = name.startswith(_STREAM) if pid in with_streams else name == _OPS
        kinds.append(SCOPE if pid not in devices else KERNEL if has_work else DEVICE_SCOPE)
    return kinds


def _work(name: str) -> int:
    return next((kind for begin, kind in _WORK.items() if name.lower().startswith(begin)), KERNEL)


def _is_around_another(lane: Int32, start_ns: Int64, duration_ns: Int64, among: Bool) -> Bool:
    """Which spans have another one of their lane inside: the next to begin, for the longer one of two comes first."""
    is_around: Bool = np.zeros(len(lane), np.bool_)
    rows = np.flatnonzero(among)
    rows = rows[np.argsort(lane[rows], kind="stable")]
    following = rows[1:]
    end_ns = start_ns + duration_ns
    until = end_ns[rows[:-1]]
    begins_inside = start_ns[following] < until - _ROUNDING_NS
    inside = (lane[rows[:-1]] == lane[following]) & begins_inside & (end_ns[following] <= until + _ROUNDING_NS)
    is_around[rows[:-1][inside]] = True
    return is_around


def _numbers(_: Collector, described: Descriptions) -> DeviceNumbers:
    """The type of the devices of a file, and their indices, from the names of their processes."""
    matches: Mapping[Any, Any] = {pid: _DEVICE.fullmatch(name) for pid, name in described.process_names.items()}
    index = {pid: int(match[2]) for pid, match in matches.items() if match and isinstance(pid, int)}
    types = [match[1] for match in matches.values() if match]

    def index_of(pid: Int64) -> Int64:
        return np.array([index.get(one, 0) for one in pid.tolist()], np.int64)

    return DeviceNumbers(_TYPES[types[0]] if types else "CUDA", index_of)


XLA = Dialect(_recognise, _kinds, _numbers, launches)
