"""Chrome's trace format as Kineto writes it, for Perfetto, chrome://tracing and HolisticTraceAnalysis."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from mtprof_nb.errors import warn
from mtprof_nb.export.atomic import replacing
from mtprof_nb.export.chrome_events import EventLines
from mtprof_nb.export.chrome_memory import allocation_lines, collection_lines
from mtprof_nb.export.chrome_text import base_ns, has_window, microseconds_text, quoted, valid_json
from mtprof_nb.export.chrome_tracks import ChromeTracks, naming_line
from mtprof_nb.model.trace import Process, Trace
from mtprof_nb.model.tracks import GROUP

#: The stream on which torch puts kernels of CUDA graphs for which no other one is named.
DEFAULT_STREAM = 7
#: Keys of the file itself, and names of lines that viewers act upon: the user's metadata must not take them.
_KEYS_OF_FILE = {"schemaVersion", "traceEvents", "displayTimeUnit", "baseTimeNanoseconds", "traceName"}
_LINES_OF_VIEWERS = re.compile(r"(process|thread)_\w+|num_cpus|trace_buffer_overflowed")


def write(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write `trace` to `path`, compressed where it ends in `.gz`; `ExportError` leaves what was there whole."""
    with replacing(path) as file:
        for text in _document(trace, os.fsdecode(path)):
            file.write(text)


def check_graph_lanes(
    trace: Trace, annotations: Mapping[int, Any] | None, lanes: str, default_stream: int = DEFAULT_STREAM
) -> None:
    """`ValueError` where torch's options for kernels of CUDA graphs are wrong, or would change what is written.

    A stream that is given without `lanes` to put on it moves nothing, in torch either: that is a warning.
    """
    if lanes not in ("all", "none"):
        msg = f"graph_lanes must be 'all' or 'none', got {lanes!r}"
        raise ValueError(msg)
    if lanes == "all" and not annotations:
        msg = "graph_lanes='all' needs cuda_graph_annotations: pass what mark_kernels recorded, or leave it 'none'"
        raise ValueError(msg)
    if annotations and bool(trace.on_device.any()):
        msg = (
            "cuda_graph_annotations: the nodes of CUDA graphs are not recorded here, so no kernel can be annotated; "
            "export without them, or record with torch.profiler"
        )
        raise ValueError(msg)
    if lanes == "none" and default_stream != DEFAULT_STREAM:
        warn(
            f"default_stream={default_stream!r} changes nothing: only graph_lanes='all' moves kernels of CUDA graphs "
            "there; leave it out, or record with torch.profiler and export with graph_lanes='all'"
        )


def _document(trace: Trace, path: str) -> Iterator[bytes]:
    base, tracks = base_ns(trace), ChromeTracks(trace)
    lines = EventLines(trace, tracks, base)
    began_ns, ended_ns = _window(trace)
    # Calls that are open at the end of the window end a moment later; readers add start and length inexactly.
    last_ns = max(ended_ns, int(trace.end_ns.max(initial=-1_000)) + 1_000)
    began, ended = microseconds_text(began_ns - base), microseconds_text(last_ns - base)
    yield _header(trace, base).encode("ascii")
    yield from lines.events()
    yield from lines.async_events()
    yield from allocation_lines(trace, tracks, base)
    yield from collection_lines(trace, tracks, base)
    yield from lines.flows()
    naming = "".join(tracks.naming_lines(began)) + "".join(
        naming_line(key, began, str(pid), 0, f'"value":{text}')
        for pid, process in zip(tracks.pids, trace.processes, strict=True)
        for key, text in _metadata(process).items()
        if not _LINES_OF_VIEWERS.fullmatch(key)
    )
    yield naming.encode("ascii")
    yield _span(trace, began).encode("ascii")
    yield f'{{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{ended}}}\n'.encode("ascii")
    yield f'],\n"traceName":{quoted(path)}\n}}\n'.encode("ascii")


def _header(trace: Trace, base: int) -> str:
    flags = {part.name: "1" for part in fields(trace.recorded) if getattr(trace.recorded, part.name)}
    entries = {"schemaVersion": "1", "deviceProperties": "[]", "trace_id": quoted(trace.trace_id), **flags}
    if len(hosts := {process.host for process in trace.processes}) == 1 and all(hosts):
        entries["host_name"] = quoted(hosts.pop())
    if trace.dropped:
        entries["dropped_events"] = str(trace.dropped)
    # A reader takes these for the whole file's: where processes disagree, only their own lines have them.
    metadata = [_metadata(process) for process in trace.processes]
    entries |= {
        key: text
        for one in metadata
        for key, text in one.items()
        if key not in _KEYS_OF_FILE and all(other.get(key, text) == text for other in metadata)
    }
    entries |= {"displayTimeUnit": '"ms"', "baseTimeNanoseconds": str(base)}
    lines = (f"{quoted(key)}:{text},\n" for key, text in entries.items())
    return "{\n" + "".join(lines) + '"traceEvents":[\n'


def _window(trace: Trace) -> tuple[int, int]:
    """The window of the recording, or where it is not known, the time from its first event to its last."""
    if has_window(trace) or not len(trace):
        return trace.began_ns, max(trace.ended_ns, trace.began_ns)
    return int(trace.start_ns.min()), int(trace.end_ns.max())


def _span(trace: Trace, began: str) -> str:
    first, last = _window(trace)
    args = f'{{"Op count":{len(trace)}}}'
    # Readers of Kineto's traces find the recording itself by these names, fourth and second from the end.
    return (
        '{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler",'
        f'"ts":{began},"dur":{microseconds_text(last - first)},"args":{args}}},\n'
        f'{{"ph":"M","name":"process_sort_index","ts":{began},"pid":"Spans","tid":0,"args":{{"sort_index":536870912}}}},\n'
        '{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":"Traces",'
        f'"tid":"Trace PyTorch Profiler","ts":{began}}},\n'
    )


def _metadata(process: Process) -> dict[str, str]:
    """The metadata of a process, with its rank, which may be known from elsewhere."""
    metadata = {str(key): valid_json(text) for key, text in process.metadata}
    return metadata if process.rank < 0 or GROUP in metadata else {**metadata, GROUP: f'{{"rank": {process.rank}}}'}
