"""Recordings that nobody here made, where they are: in the folder `MTPROF_TRACES`, or in `shared/traces` beside."""

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("MTPROF_TRACES") or Path(__file__).parents[3] / "shared" / "traces")
NAMES = (
    *("a100_before", "a100_ddp_rank0", "ascend_rank0", "ascend_rank1", "cpu_only", "h100_bert_small"),
    *("h100_timesformer", "mi250_toy", "mi300_bert_small", "mi300_timesformer", "multi_stream_sync"),
    *("ranks_rank0", "ranks_rank1", "rtx2080ti_resnet", "triton", "v100_after"),
)


def trace_path(name: str) -> Path:
    """The file of a recording; the test is skipped where it is not there."""
    path = FOLDER / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {FOLDER}: set MTPROF_TRACES to a folder of recordings")
    return path


def plain_events(name: str) -> list[dict[str, Any]]:
    """The events of a recording as they stand in its file."""
    with gzip.open(trace_path(name)) as file:
        document = json.load(file)
    events: list[dict[str, Any]] = document if isinstance(document, list) else document["traceEvents"]
    return events


def table(name: str, kind: str) -> list[dict[str, str]]:
    """The rows of a table that another tool made of a recording."""
    with (trace_path(name).parent / f"{name}.{kind}.csv").open(newline="") as file:
        return list(csv.DictReader(file))
