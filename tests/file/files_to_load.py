"""Files to load: recordings of one op, and Chrome traces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from traces import event, make_trace

from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording

TRACE = json.dumps({"schemaVersion": 1, "traceEvents": []})


def save(path: Path, *, at: int = 0, **scalars: Any) -> Trace:
    trace = make_trace([event(f"op {path.stem}", at + 1, at + 9)], began_ns=at, ended_ns=at + 10, **scalars)
    path.parent.mkdir(parents=True, exist_ok=True)
    Recording(trace).save(path)
    return trace


def write(path: Path, text: str = TRACE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def names(trace: Trace) -> list[str]:
    return [trace.names[name] for name in trace.name]


def chrome(path: Path, name: str, at: int = 0) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 5, "tid": 5, "ts": at + 1, "dur": 8, "args": {}}
    write(path, json.dumps({"schemaVersion": 1, "traceEvents": [op]}))


def ranks(trace: Trace) -> list[tuple[int, int]]:
    return [(process.pid, process.rank) for process in trace.processes]
