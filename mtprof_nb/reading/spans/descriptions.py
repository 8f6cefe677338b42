"""Names of processes and threads, and facts of the whole recording, as the file describes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mtprof_nb.model.trace import Recorded
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.text.event_records import json_text, parsed

#: Members of a file that are no metadata of the user.
_OF_FILE = {
    *("schemaVersion", "traceEvents", "displayTimeUnit", "baseTimeNanoseconds", "traceName", "trace_id"),
    *("host_name", "dropped_events", *(part.name for part in fields(Recorded))),
}
_OF_VIEWERS = re.compile(r"(process|thread)_\w+|num_cpus|trace_buffer_overflowed")


@dataclass
class Descriptions:
    """Texts by process, or by process and thread, as the file spells their numbers."""

    process_names: dict[Any, str] = field(default_factory=dict)
    labels: dict[Any, str] = field(default_factory=dict)
    thread_names: dict[tuple[Any, Any], str] = field(default_factory=dict)
    #: Metadata of single processes: key to JSON text.
    metadata: dict[Any, dict[str, str]] = field(default_factory=dict)


def descriptions(collector: Collector) -> Descriptions:
    """The names that the file gives."""
    texts = Descriptions()
    for pid, tid, name, args in collector.metadata:
        try:
            _describe(texts, pid, tid, str(name), args)
        except TypeError:  # a number that is a list or an object
            collector.left_out["Descriptions of no process or thread, left out"] += 1
    return texts


def _describe(texts: Descriptions, pid: Any, tid: Any, name: str, args: Mapping[str, Any]) -> None:
    text = args.get("name" if name.endswith("name") else "labels")
    if name == "process_name":
        texts.process_names[pid] = _string(text)
    elif name == "process_labels":
        texts.labels[pid] = _string(text)
    elif name == "thread_name":
        texts.thread_names[pid, tid] = _string(text).strip()
    elif "value" in args and not _OF_VIEWERS.fullmatch(name):
        texts.metadata.setdefault(pid, {})[name] = json_text(args["value"])


def _string(value: Any) -> str:
    """Text of a plain value, or of bytes with JSON."""
    value = parsed(value) if isinstance(value, bytes) else value
    return value if isinstance(value, str) else "" if value is None else str(value)


def metadata_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Members of the file that describe the recording: key to JSON text."""
    kept = [pair for pair in document.items() if pair[0] not in _OF_FILE and pair != ("deviceProperties", [])]
    return {key: json.dumps(value) for key, value in kept}


def base_of(document: Mapping[str, Any]) -> int:
    """The moment from which the file counts its times."""
    base = document.get("baseTimeNanoseconds", 0)
    try:
        number = int(base)
    except (TypeError, ValueError, OverflowError):
        return 0
    return number if abs(number) <= 2**61 else 0
