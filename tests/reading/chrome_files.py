"""Small Chrome traces written by hand, and the loaded events as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mtprof_nb.model.trace import KINDS, PHASES, Trace

HOST = 100


def span(
    name: str, ts: float | str, dur: float, cat: str = "cpu_op", tid: Any = 1, pid: Any = HOST, **args: Any
) -> dict[str, Any]:
    """A complete event; keywords are members of `args`, with `_` for a blank."""
    members = {key.replace("_", " "): value for key, value in args.items()}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": members}


def flow(ph: str, number: int, ts: float, cat: str, tid: Any = 1, pid: Any = HOST) -> dict[str, Any]:
    """One end of an arrow."""
    return {"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": cat}


def named(name: str, text: str, pid: Any = HOST, tid: Any = 0) -> dict[str, Any]:
    """An event that names a process or a thread."""
    key = "labels" if name == "process_labels" else "name"
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {key: text}}


def written(folder: Path, events: Iterable[dict[str, Any]], name: str = "trace.json", **members: Any) -> Path:
    """A file with these events, and these members beside them."""
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, **members, "traceEvents": list(events)}))
    return path


def facts(trace: Trace, *columns: str) -> list[tuple[Any, ...]]:
    """Name and these columns of each event; kind, phase, device and track in words."""
    words = {
        "kind": KINDS,
        "phase": PHASES,
        "device": trace.devices,
        "track": [track.title for track in trace.tracks],
    }
    found = [[trace.names[one] for one in trace.name.tolist()]]
    for column in columns:
        values = getattr(trace, column).tolist()
        found.append([words[column][one] for one in values] if column in words else values)
    return list(zip(*found, strict=True))
