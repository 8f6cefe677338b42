"""One event of a trace: a mapping of its keys, with torch's attribute names."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from mtprof_nb.analysis import fields
from mtprof_nb.analysis.children import children, launched
from mtprof_nb.analysis.costs import averaged_costs, averaged_name
from mtprof_nb.analysis.fields import extra
from mtprof_nb.analysis.python_calls import python_numbers
from mtprof_nb.errors import legible, shortened
from mtprof_nb.model.trace import ACTIVITY_TYPES, BACKWARD, DEVICE_WORK, ENGINE_PREFIX, PYTHON, SCOPE, Trace
from mtprof_nb.tables.text_table import FormattedTimes

_FUNCTION_SCOPE, _BACKWARD_SCOPE, _USER_SCOPE = 0, 1, 7


class Interval(NamedTuple):
    """Microseconds since the recording began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """A kernel that an op launched: its name, the index of its device, microseconds."""

    name: str
    device: int
    duration: float


class DeviceName(str):
    """The name of a device type, which also equals torch's enum member for it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str.__eq__(self, other)
        name = getattr(other, "name", None)
        return str.__eq__(self, "NPU" if name == "PrivateUse1" else str(name))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def used_device(trace: Trace) -> str | None:
    """The first recorded device apart from the CPU, in torch's spelling; None without one."""
    return next((device.lower() for device in trace.devices if device != "CPU"), None)


def _time(column: str, doc: str) -> property:
    """A column of the costs in microseconds; 0 where it was not recorded."""

    def read(event: Event) -> float:
        values = getattr(averaged_costs(event._trace), column)
        return 0.0 if values is None else values.item(event._position) / 1000

    return property(read, doc=doc)


def _bytes(column: str, doc: str) -> property:
    """A column of the costs in memory; 0 where memory was not recorded."""

    def read(event: Event) -> int:
        memory = averaged_costs(event._trace).memory
        return 0 if memory is None else getattr(memory, column).item(event._position)

    return property(read, doc=doc)


def _python_number(column: str, doc: str) -> property:
    return property(lambda event: getattr(python_numbers(event._trace), column).item(event._position), doc=doc)


class Event(FormattedTimes, Mapping[str, Any]):
    """One event. Its keys are what was recorded; its attributes are the keys, and those of torch's `FunctionEvent`.

    torch's attributes that were not recorded are empty or zero, as in torch; torch's times are in microseconds.
    """

    __slots__ = ("_position", "_trace")

    count = 1
    node_id = -1
    is_remote = False
    is_legacy = False
    #: Never recorded: torch's values for events without these.
    flow_id = flow_type = 0
    flow_start = False
    self_cpu_percent = total_cpu_percent = total_device_percent = -1
    metadata = None

    def __init__(self, trace: Trace, position: int) -> None:
        self._trace = trace
        self._position = position

    def __getitem__(self, key: str) -> Any:
        return fields.field(self._trace, self._position, key)

    def __iter__(self) -> Iterator[str]:
        return fields.keys(self._trace, self._position)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, name: str) -> Any:
        # A private name is not a key; on an event that is being copied, looking it up would recurse.
        if not name.startswith("_"):
            with suppress(KeyError):
                return self[name]
        msg = f"'Event' object has no attribute {name!r}: it was not recorded for this event, or is not a key of events"
        raise AttributeError(msg)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Event):
            return self._trace is other._trace and self._position == other._position
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((id(self._trace), self._position))

    def __repr__(self) -> str:
        return (
            f"<Event {self.id} {shortened(self.name)!r} {self.kind} {legible(self.device_type)} {self.duration_ns} ns>"
        )

    @property
    def id(self) -> int:
        """Position of the event in the trace."""
        return self._position

    @property
    def trace(self) -> Trace:
        """The recording that has the event."""
        return self._trace

    @property
    def key(self) -> str:
        """The name that the event is averaged under."""
        return averaged_name(self["name"])

    @property
    def trace_name(self) -> str:
        """The name as recorded."""
        name: str = self["name"]
        return name

    @property
    def overload_name(self) -> str:
        """The overload of an op where it was recorded."""
        return fields.entry(self._trace.overload, self._trace.overloads, self._position) or ""

    @property
    def device_type(self) -> DeviceName:
        """The device of a kernel, or the device that an op was called for."""
        return DeviceName(self["device_type"])

    @property
    def device_index(self) -> int:
        """Which of several devices."""
        return self._trace.device_index.item(self._position)

    @property
    def thread(self) -> int:
        """The native thread, or a device's stream."""
        return fields.thread_id(self._trace, self._position)

    device_resource_id = thread

    @property
    def fwd_thread(self) -> int:
        """The thread of the forward event behind one of the backward pass; 0, as in torch, where there is none."""
        forward = self._trace.forward.item(self._position)
        return fields.thread_id(self._trace, forward) if forward >= 0 else 0

    @property
    def time_range(self) -> Interval:
        """From start to end since the recording began."""
        began_ns = self._trace.began_ns
        return Interval((self["start_ns"] - began_ns) / 1000, (self["end_ns"] - began_ns) / 1000)

    @property
    def sequence_nr(self) -> int:
        """Autograd's number, -1 where there is none."""
        return self._trace.sequence_nr.item(self._position)

    @property
    def input_shapes(self) -> list[Any]:
        """A list per input; empty unless shapes were recorded."""
        return fields.input_shapes(self._trace, self._position)

    structured_input_shapes = input_shapes

    @property
    def input_dtypes(self) -> list[str]:
        """The element type of each input, "" for one that is not a tensor; empty unless shapes were recorded."""
        return list(fields.entry(self._trace.shape, self._trace.dtypes, self._position) or ())

    @property
    def structured_input_strides(self) -> list[Any]:
        """A list of strides per input; empty unless shapes were recorded."""
        return fields.input_strides(self._trace, self._position)

    @property
    def concrete_inputs(self) -> list[Any]:
        """The value of each input, None for a tensor; empty unless shapes were recorded."""
        return fields.input_values(self._trace, self._position)[0]

    @property
    def kwinputs(self) -> dict[str, Any]:
        """Values by keyword that `_RecordFunctionFast` was given; empty unless shapes were recorded."""
        return fields.input_values(self._trace, self._position)[1]

    python_id = _python_number("own", "The number of a Python call, from 1 on; -1 for anything else.")
    python_parent_id = _python_number("parent", "The number of the enclosing Python call, -1 without one.")
    python_module_id = _python_number("module", "The number of a called module among those of its class, else -1.")

    @property
    def linked_correlation_id(self) -> int:
        """The `correlation_id` of the op that launched it, 0 without one."""
        launcher = -1 if self._trace.launcher is None else self._trace.launcher.item(self._position)
        return self._trace.correlation_id.item(launcher) if launcher >= 0 else 0

    @property
    def external_id(self) -> int:
        """The `correlation_id` of an op, or of the op that launched the event; 0 without one."""
        return self._trace.correlation_id.item(self._position) or self.linked_correlation_id

    @property
    def metadata_json(self) -> str:
        """Deprecated: the members of a JSON object, `Ev Idx` as in a Chrome trace and the metadata of the event."""
        warnings.warn("`metadata_json` is deprecated. Use `event_metadata` instead.", FutureWarning, stacklevel=2)
        metadata = {"Ev Idx": self._position, **extra(self._trace, self._position)}
        return ", ".join(f'"{key}": {value}' for key, value in metadata.items())

    @property
    def event_metadata(self) -> Any:
        """Torch's `EventMetadata` of a collective or a device event; None without metadata."""
        metadata = extra(self._trace, self._position)
        return import_module("torch.autograd.profiler_util")._build_metadata(metadata) if metadata else None

    @property
    def stack(self) -> list[str]:
        """Frames, innermost first; empty unless stacks were recorded."""
        return fields.stack(self._trace, self._position)

    @property
    def flops(self) -> int:
        """Floating point operations, 0 where no formula is known."""
        return max(self._trace.flops.item(self._position), 0) if self._trace.flops is not None else 0

    @property
    def scope(self) -> int:
        """Torch's record scope: 7 for a scope of the user, 1 for a node of the backward pass, else 0."""
        if self._trace.kind.item(self._position) == SCOPE:
            return _USER_SCOPE
        is_node = self._trace.phase.item(self._position) == BACKWARD and ENGINE_PREFIX + self.name in self._trace.names
        return _BACKWARD_SCOPE if is_node else _FUNCTION_SCOPE

    @property
    def use_device(self) -> str | None:
        """The first recorded device apart from the CPU."""
        return used_device(self._trace)

    @property
    def is_async(self) -> bool:
        """Whether it ended on another thread than the one it started on."""
        return self._trace.is_async.item(self._position)

    @property
    def is_user_annotation(self) -> bool:
        """Whether a user or a library named it by `record_function`."""
        return self["kind"] in ("scope", "device_scope")

    @property
    def is_python_function(self) -> bool:
        """Whether it is a call of a Python function."""
        return self._trace.kind.item(self._position) == PYTHON

    @property
    def activity_type(self) -> str:
        """Kineto's word for its kind."""
        return ACTIVITY_TYPES[self._trace.kind.item(self._position)]

    @property
    def cpu_parent(self) -> Event | None:
        """The event of the same thread that directly contains it."""
        parent = averaged_costs(self._trace).parent.item(self._position)
        return Event(self._trace, parent) if parent >= 0 else None

    @property
    def cpu_children(self) -> list[Event]:
        """The events of the same thread that it directly contains."""
        return [Event(self._trace, child) for child in children(self._trace, self._position)]

    @property
    def kernels(self) -> list[Kernel]:
        """Work that it launched on a device: kernels, copies, sets and collectives."""
        events = [Event(self._trace, position) for position in launched(self._trace, self._position)]
        kernels = [event for event in events if event["kind"] in DEVICE_WORK]
        return [Kernel(event.name, event.device_index, event.duration_ns / 1000) for event in kernels]

    cpu_time_total = _time("total_ns", "Time on the host.")
    self_cpu_time_total = _time("self_ns", "Time on the host without that of its children.")
    device_time_total = _time("device_ns", "Time of the kernels that it and its children launched, or of itself.")
    self_device_time_total = _time("self_device_ns", "Time of the kernels that it launched itself, or of itself.")
    cpu_memory_usage = _bytes("cpu", "Host bytes that were allocated minus released during the event.")
    self_cpu_memory_usage = _bytes("self_cpu", "Host bytes allocated minus released, without those of its children.")
    device_memory_usage = _bytes("device", "Device bytes that were allocated minus released during the event.")
    self_device_memory_usage = _bytes("self_device", "Device bytes allocated minus released, without its children's.")
