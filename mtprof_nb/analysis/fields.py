"""Keys and values of one event: those that every event has, and those that were recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mtprof_nb.model.input_values import from_text
from mtprof_nb.model.trace import KINDS, OP, PHASES, Int32, Trace


def field(trace: Trace, position: int, key: str) -> Any:
    """The value of `key` for the event at `position`, in plain types; `KeyError` where it was not recorded."""
    known = _FIELDS.get(key)
    if known is None:
        return _memory_fields(trace, position)[key]
    if not known.is_there(trace, position):
        raise KeyError(key)
    return known.value(trace, position)


def keys(trace: Trace, position: int) -> Iterator[str]:
    yield from (key for key, known in _FIELDS.items() if known.is_there(trace, position))
    yield from _memory_fields(trace, position)


class _Field(NamedTuple):
    """One key of an event: its value, and whether the event at a position has it."""

    value: Callable[[Trace, int], Any]
    is_there: Callable[[Trace, int], bool] = lambda _trace, _position: True


def _is_op(trace: Trace, position: int) -> bool:
    return trace.kind.item(position) == OP


def thread_id(trace: Trace, position: int) -> int:
    """The native thread of an event."""
    return trace.tracks[trace.track.item(position)].native_id


def _has(column: str) -> Callable[[Trace, int], bool]:
    """A test whether an optional column was recorded and has a value for the event."""

    def is_there(trace: Trace, position: int) -> bool:
        values = getattr(trace, column)
        return values is not None and values.item(position) >= 0

    return is_there


def entry(column: Int32 | None, table: Sequence[Any], position: int) -> Any:
    """The entry of a table that an optional column points to at `position`; None where there is none."""
    row = -1 if column is None else column.item(position)
    return table[row] if row >= 0 and table else None


def nested_list(value: tuple[Any, ...]) -> list[Any]:
    """A tuple as a list, and the tuples in it too."""
    return [nested_list(item) if isinstance(item, tuple) else item for item in value]


def input_shapes(trace: Trace, position: int) -> list[Any]:
    """A list per input, nested for a list of tensors; empty where shapes were not recorded."""
    return nested_list(entry(trace.shape, trace.shapes, position) or ())


def input_strides(trace: Trace, position: int) -> list[Any]:
    """A list of strides per input, nested for a list of tensors; empty where they were not recorded."""
    return nested_list(entry(trace.shape, trace.strides, position) or ())


def input_values(trace: Trace, position: int) -> tuple[list[Any], dict[str, Any]]:
    """Values of positional inputs, None for a tensor, and by keyword; both empty where they were not recorded."""
    text = entry(trace.values, trace.value_texts, position)
    return ([], {}) if text is None else from_text(text)


def extra(trace: Trace, position: int) -> dict[str, str]:
    """Metadata of a collective or of a device for an event: JSON text by key; empty without any."""
    metadata: dict[str, str] = json.loads(entry(trace.extra, trace.extras, position) or "{}")
    return metadata


def stack(trace: Trace, position: int) -> list[str]:
    """Frames as `file:line:function`, innermost first; empty where stacks were not recorded."""
    if trace.stack is None or trace.stacks is None:
        return []
    return [str(frame) for frame in trace.stacks.stack(trace.stack.item(position))]


_FIELDS = {
    "name": _Field(lambda trace, at: trace.names[trace.name.item(at)]),
    "kind": _Field(lambda trace, at: KINDS[trace.kind.item(at)]),
    "device_type": _Field(lambda trace, at: trace.devices[trace.device.item(at)]),
    "start_ns": _Field(lambda trace, at: trace.start_ns.item(at)),
    "end_ns": _Field(lambda trace, at: trace.start_ns.item(at) + trace.duration_ns.item(at)),
    "duration_ns": _Field(lambda trace, at: trace.duration_ns.item(at)),
    "step": _Field(lambda trace, at: trace.step.item(at)),
    "thread_id": _Field(thread_id),
    "phase": _Field(lambda trace, at: PHASES[trace.phase.item(at)]),
    "correlation_id": _Field(lambda trace, at: trace.correlation_id.item(at), _is_op),
    "runtime_name": _Field(lambda _trace, _at: "dispatch_kernel", _is_op),
    "runtime_tid": _Field(thread_id, _is_op),
    "sequence_nr": _Field(lambda trace, at: trace.sequence_nr.item(at), _has("sequence_nr")),
    "input_shapes": _Field(input_shapes, lambda trace, _at: trace.shape is not None),
    "stack": _Field(stack, lambda trace, _at: trace.stack is not None),
    "stack_origin": _Field(
        lambda _trace, _at: "forward",
        lambda trace, at: trace.stack_is_forward is not None and trace.stack_is_forward.item(at),
    ),
    "flops": _Field(lambda trace, at: trace.flops.item(at), _has("flops")),  # type: ignore[union-attr]
    "module": _Field(lambda trace, at: trace.modules[trace.module.item(at)], _has("module")),  # type: ignore[union-attr]
}


def _memory_fields(trace: Trace, position: int) -> dict[str, int]:
    """Bytes around an op, under the name of its own device."""
    if trace.memory_before is None or trace.memory_after is None or trace.memory_before.item(position) < 0:
        return {}
    before, after = trace.memory_before.item(position), trace.memory_after.item(position)
    prefix = f"{trace.devices[trace.device.item(position)].lower()}_memory_allocated"
    return {f"{prefix}_before": before, f"{prefix}_after": after, f"{prefix}_delta": after - before}
