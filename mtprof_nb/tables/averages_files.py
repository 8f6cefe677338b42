"""Rows of averages as files: a Chrome trace with an event for each row, and collapsed stacks."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from mtprof_nb.analysis.stacks.stack_metrics import check_metric
from mtprof_nb.export.atomic import replacing
from mtprof_nb.export.collapsed_stacks import collapsed_frame
from mtprof_nb.tables.averages import FunctionEventAvg
from mtprof_nb.tables.event import Event


def write_chrome_trace(rows: Sequence[FunctionEventAvg], path: str | os.PathLike[str]) -> None:
    """Write an `X` event for each row, on a thread of its own, as long as the row's total time."""
    events = [
        {
            "name": row.key,
            "cat": "user_annotation" if row.is_user_annotation else "cpu_op" if row.kind == "op" else row.kind,
            "ph": "X",
            "ts": 0.0,
            "dur": row.cpu_time_total or row.device_time_total,
            "pid": os.getpid(),
            "tid": lane,
            "args": {
                "count": row.count,
                "self_cpu_time_total": row.self_cpu_time_total,
                "cpu_time_total": row.cpu_time_total,
            },
        }
        for lane, row in enumerate(rows)
    ]
    with replacing(path) as file:
        file.write(json.dumps({"traceEvents": events}).encode())


def write_stacks(rows: Sequence[FunctionEventAvg | Event], path: str | os.PathLike[str], metric: str) -> None:
    """Write a line for each row with a stack and at least a microsecond: frames root first, then the number."""
    check_metric(metric)
    attribute = "self_cpu_time_total" if metric == "self_cpu_time_total" else "self_device_time_total"
    with replacing(path) as file:
        for row in rows:
            value = int(getattr(row, attribute))
            if row.stack and value > 0:
                frames = ";".join(map(collapsed_frame, reversed(row.stack)))
                file.write(f"{frames} {value}\n".encode())
