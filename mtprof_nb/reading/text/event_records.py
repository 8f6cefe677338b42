"""Records of a Chrome trace as they stand in the file. A member may have any type: files are somebody else's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Event(Protocol):
    """An entry of `traceEvents`; None or "" for a member that it lacks."""

    ph: Any
    cat: Any
    name: Any
    pid: Any
    tid: Any
    ts: Any
    dur: Any
    id: Any
    args: Any


#: Facts of ops: attribute, and key in the file.
_OP_KEYS = {
    "external": "External id",
    "sequence_nr": "Sequence number",
    "forward_thread": "Fwd thread id",
    "record_function": "Record function id",
    "dims": "Input Dims",
    "types": "Input type",
    "strides": "Input Strides",
    "inputs": "Concrete Inputs",
    "call_stack": "Call stack",
    "frames": "stack",
    "module": "Module Hierarchy",
    "step": "step",
    "phase": "phase",
    "device_type": "device_type",
    "flops": "flops",
    "line": "Source line",
    "overload": "Overload",
    "is_forward_stack": "Call stack is of the forward op",
    "memory_before": "cpu_memory_allocated_before",
    "memory_after": "cpu_memory_allocated_after",
}
#: Facts of ops, of Python calls, of calls of a device's runtime, and of allocations: for each its key in the file.
KEYS = {
    "op": _OP_KEYS,
    "python": {
        "python_id": "Python id",
        "python_parent": "Python parent id",
        "python_module": "Python module id",
        **{fact: _OP_KEYS[fact] for fact in ("module", "step", "phase", "device_type", "line")},
    },
    "call": {"external": "External id", "correlation": "correlation", "cbid": "cbid"},
    "memory": {
        "address": "Addr",
        "nbytes": "Bytes",
        "device_number": "Device Type",
        "device_index": "Device Id",
        "total": "Total Allocated",
        "reserved": "Total Reserved",
    },
}
#: Facts that are kept as JSON text.
TEXTS = frozenset(
    {"dims", "types", "strides", "inputs", "call_stack", "frames", "module", "phase", "device_type", "line", "overload"}
)
#: Keys of `args` that say nothing new: numbers of the file's own, and what other keys say too.
IGNORED_KEYS = (
    *("Ev Idx", "Profiler Event Index", "Trace name", "Trace iteration", "finished"),
    *("correlation_id", "runtime_name", "runtime_tid", "input_shapes", "cpu_memory_allocated_delta"),
)
#: Members of `args` of one event by the attributes of `KEYS`; None or b"" for one that it lacks.
Facts = Any


class Decoder(Protocol):
    """Decodes JSON; `ValueError` where it cannot."""

    def document(self, text: bytes) -> Any:
        """Any JSON text as Python objects."""
        ...

    def events(self, text: bytes, digits: bool) -> Sequence[Event]:
        """The events of the text of a list. With `digits`, times are the bytes that stand there."""
        ...

    def facts(self, args: Sequence[Any], kind: str) -> Sequence[Facts]:
        """The facts `KEYS[kind]` of several events; `ValueError` where one has a member that is not known."""
        ...

    def members(self, args: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """All members of `args` of several events, as JSON texts; `ValueError` where one is no object."""
        ...
