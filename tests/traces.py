"""Hand-made traces: a list of short rows becomes a `Trace` with exact numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mtprof_nb.model.input_values import to_text
from mtprof_nb.model.trace import (
    KERNEL,
    KINDS,
    PHASES,
    Allocations,
    Frame,
    Process,
    Recorded,
    SourceLine,
    StackInterner,
    Trace,
    Track,
)


def event(name: str, start_ns: int, end_ns: int, **facts: Any) -> dict[str, Any]:
    """One row for `make_trace`. Facts: kind, device, thread, phase, step, sequence_nr, forward (a position in
    the list), shapes, dtypes, stack (frames innermost first: ("f.py", 3, "run")), stack_is_forward,
    memory=(before, after), flops, module, line=("f.py", 3), line_stack (as stack), parameter,
    is_async, launcher, overload, strides (beside shapes), values=(inputs, keywords),
    record_function, extra (JSON by key)."""
    return {"name": name, "start_ns": start_ns, "end_ns": end_ns, **facts}


def _intern(values: list[Any], absent: Any = None) -> tuple[np.ndarray, tuple[Any, ...]]:
    table: dict[Any, int] = {}
    ids = [-1 if value is absent else table.setdefault(value, len(table)) for value in values]
    return np.array(ids, np.int32), tuple(table)


def _track(row: dict[str, Any]) -> Track:
    native = row.get("thread", 1)
    if KINDS.index(row.get("kind", "op")) >= KERNEL:
        device = f"{row.get('device', 'CPU')}:{row.get('device_index', 0)}"
        return Track(native, f"stream {native}", "stream", device=device)
    return Track(native, f"thread {native}", number=row.get("thread_number", -1))


def make_trace(rows: list[dict[str, Any]], allocations: list[dict[str, Any]] | None = None, **scalars: Any) -> Trace:
    """A `Trace` of `rows` (see `event`), sorted. `scalars` are `Trace` fields such as label or metadata."""

    def column(key: str, default: Any) -> list[Any]:
        return [row.get(key, default) for row in rows]

    def given(key: str) -> bool:
        return any(key in row for row in rows)

    name, names = _intern(column("name", ""))
    device, devices = _intern(column("device", "CPU"))
    track, tracks = _intern([_track(row) for row in rows])
    if not devices:
        devices = ("CPU",)
    is_op = [row.get("kind", "op") == "op" for row in rows]
    optional: dict[str, Any] = {}
    recorded: dict[str, bool] = {}
    if given("shapes"):
        optional["shape"], pairs = _intern(
            [
                (row["shapes"], row.get("dtypes", ("float",) * len(row["shapes"])), row.get("strides", ()))
                if "shapes" in row
                else None
                for row in rows
            ]
        )
        optional["shapes"] = tuple(pair[0] for pair in pairs)
        optional["dtypes"] = tuple(pair[1] for pair in pairs)
        optional["strides"] = tuple(pair[2] for pair in pairs) if given("strides") else ()
        recorded["record_shapes"] = True
    if given("stack"):
        interner = StackInterner()
        optional["stack"] = [interner.stack(Frame(*frame) for frame in reversed(row.get("stack", ()))) for row in rows]
        optional["stacks"] = interner.tree()
        optional["stack_is_forward"] = column("stack_is_forward", False)
        recorded["with_stack"] = True
    if given("memory"):
        optional["memory_before"] = [row.get("memory", (-1, -1))[0] for row in rows]
        optional["memory_after"] = [row.get("memory", (-1, -1))[1] for row in rows]
        recorded["profile_memory"] = True
    if given("flops"):
        optional["flops"] = column("flops", -1)
        recorded["with_flops"] = True
    for key, table in (("module", "modules"), ("overload", "overloads"), ("parameter", "parameters")):
        if given(key):
            optional[key], optional[table] = _intern(column(key, None))
    if given("module"):
        recorded["with_modules"] = True
    if given("line"):
        lines, table = _intern(column("line", None))
        optional["line"], optional["lines"] = lines, tuple(SourceLine(*line) for line in table)
    if given("line_stack"):
        marked = StackInterner()
        optional["line_stack"] = [
            marked.stack(Frame(*frame) for frame in reversed(row.get("line_stack", ()))) for row in rows
        ]
        optional["line_stacks"] = marked.tree()
    if given("values"):
        texts = [to_text(*row["values"]) if "values" in row else None for row in rows]
        optional["values"], optional["value_texts"] = _intern(texts)
    if given("extra"):
        optional["extra"], optional["extras"] = _intern(
            [json.dumps(said) if said else None for said in column("extra", None)]
        )
    if given("record_function"):
        optional["record_function"] = column("record_function", 0)
    for key in ("launcher", "launch", "moved_bytes"):
        if given(key):
            optional[key] = column(key, -1)
    if allocations is not None:
        recorded["profile_memory"] = True
        total, totals = 0, []
        for row in allocations:
            total += row["nbytes"]
            totals.append(row.get("total", total))
        optional["allocations"] = Allocations(
            time_ns=[row["time_ns"] for row in allocations],
            nbytes=[row["nbytes"] for row in allocations],
            total=totals,
            address=[row.get("address", 0) for row in allocations],
            event=[row.get("event", -1) for row in allocations],
            track=[tracks.index(_track(row)) for row in allocations],
            device=[devices.index(row.get("device", "CPU")) for row in allocations],
            device_index=[row.get("device_index", 0) for row in allocations],
            reserved=[row.get("reserved", 0) for row in allocations] if "reserved" in str(allocations) else None,
        )
    starts, ends = column("start_ns", 0), column("end_ns", 0)
    metadata = tuple(scalars.pop("metadata", {}).items())
    scalars.setdefault("recorded", Recorded(**recorded))
    scalars.setdefault("began_ns", min(starts, default=0))
    scalars.setdefault("ended_ns", max(ends, default=0))
    return Trace(
        name=name,
        kind=[KINDS.index(kind) for kind in column("kind", "op")],
        device=device,
        device_index=column("device_index", 0),
        start_ns=starts,
        duration_ns=[end - start for start, end in zip(starts, ends, strict=True)],
        track=track,
        phase=[PHASES.index(phase) for phase in column("phase", "forward")],
        correlation_id=np.cumsum(is_op) * is_op if rows else [],
        sequence_nr=column("sequence_nr", -1),
        forward=column("forward", -1),
        step=column("step", 0),
        is_async=column("is_async", False),
        names=names,
        devices=devices,
        tracks=tracks,
        processes=(Process(scalars.pop("pid", 0), host=scalars.pop("host", ""), metadata=metadata),),
        **optional,
        **scalars,
    ).sorted()
