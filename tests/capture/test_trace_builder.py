"""Facts that the builder completes for all hooks and files, on hand-made events."""

from dataclasses import replace
from typing import Any

import numpy as np

from mtprof_nb.building.autograd_nodes import NodeLinks
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.building.trace_builder import build
from mtprof_nb.model.trace import (
    BACKWARD,
    FORWARD,
    KERNEL,
    OP,
    OPTIMIZER,
    OTHER,
    PHASES,
    RUNTIME,
    SCOPE,
    Trace,
    Track,
)


def recorded(*rows: tuple[str, int, int, int, int]) -> RecordedEvents:
    """Events of one or two threads: the name, kind, start, end and thread of each."""
    names, kinds, starts, ends, threads = zip(*rows, strict=True)
    no = np.zeros(len(rows), np.bool_)
    return RecordedEvents(
        name=np.arange(len(rows), dtype=np.int32),
        names=names,
        kind=np.array(kinds, np.int8),
        start_ns=np.array(starts, np.int64),
        duration_ns=np.array(ends, np.int64) - np.array(starts, np.int64),
        thread=np.array(threads, np.int32),
        threads=(Track(1, "main"), Track(2, "other")),
        sequence_nr=np.full(len(rows), -1, np.int64),
        is_backward_node=no,
        is_async=no,
    )


def built(events: RecordedEvents, *phases: int, facts: dict[str, Any] | None = None, **more: Any) -> Trace:
    """The trace of `events` in these phases, without forward ops."""
    none = np.full(len(events), -1, np.int32)
    return build(events, NodeLinks(np.array(phases, np.int8), none, none), facts or {}, **more)


def test_a_kernel_has_the_phase_of_its_op_and_without_one_depends_on_training() -> None:
    events = recorded(
        ("op", OP, 0, 9, 0), ("launch", RUNTIME, 1, 2, 0), ("known", KERNEL, 3, 4, 1), ("k", KERNEL, 5, 6, 1)
    )
    launches = {"launcher": np.array([-1, 0, 0, -1], np.int32), "launch": np.array([-1, -1, 1, -1], np.int32)}

    def phases(first: int) -> list[str]:
        return [PHASES[one] for one in built(events, first, OTHER, OTHER, OTHER, facts=launches).phase]

    assert phases(BACKWARD) == ["backward", "backward", "backward", "other"]
    assert phases(FORWARD) == ["forward", "forward", "forward", "forward"]


def test_scopes_have_the_inputs_that_they_were_given_and_ops_always_some() -> None:
    events = recorded(("op", OP, 0, 1, 0), ("bare", SCOPE, 2, 3, 0), ("given", SCOPE, 4, 5, 0))
    facts = {"shape": np.array([0, 0, 1], np.int32), "shapes": ((), ((2,),)), "dtypes": ((), ("float",))}
    trace = built(events, FORWARD, OTHER, OTHER, facts=facts)

    assert trace.shape is not None
    assert trace.shape.tolist() == [0, -1, 1]


def test_operations_are_counted_by_the_outermost_op_with_a_count() -> None:
    events = recorded(("outer", OP, 0, 9, 0), ("inner", OP, 1, 2, 0), ("beside", OP, 3, 4, 1))
    counts = np.array([10, 10, 7])
    trace = built(events, FORWARD, FORWARD, FORWARD, facts={"flops": counts})

    assert trace.flops is not None
    assert trace.flops.tolist() == [10, -1, 7]
    assert counts.tolist() == [10, 10, 7]


def test_ops_are_on_the_device_of_their_inputs_and_scopes_on_the_cpu() -> None:
    events = recorded(("on it", OP, 0, 1, 0), ("scope", SCOPE, 2, 3, 0), ("cpu", OP, 4, 5, 0))
    trace = built(events, FORWARD, OTHER, FORWARD, input_devices=("NPU", np.array([1, 1, -1], np.int8)))

    assert (trace.devices, trace.device.tolist(), trace.device_index.tolist()) == (("CPU", "NPU"), [1, 0, 0], [1, 0, 0])


def test_an_op_on_a_temporary_updates_the_parameter_of_the_ops_around_it_on_its_thread() -> None:
    events = recorded(
        *(("of w", OP, 0, 10, 0), ("inside", OP, 1, 2, 0), ("elsewhere", OP, 3, 4, 1)),
        *(("temporary", OP, 20, 21, 0), ("of w again", OP, 30, 31, 0), ("unknown", OP, 40, 41, 0)),
    )
    asked: list[int] = []

    def own(rows: Any) -> list[str | None]:
        asked.extend(rows.tolist())
        return [{"of w": "w", "of w again": "w", "elsewhere": "b"}.get(events.names[row]) for row in rows]

    trace = built(events, *[OPTIMIZER] * 6, own_parameters=own)

    assert asked == [0, 3, 4, 5, 2]
    assert (trace.parameter is not None, trace.parameters) == (True, ("w", "b"))
    assert [trace.parameter[row] for row in range(6)] == [0, 0, 1, 0, 0, -1]


def test_nobody_is_asked_for_parameters_where_no_op_is_of_an_optimizer() -> None:
    trace = built(recorded(("op", OP, 0, 1, 0)), FORWARD, own_parameters=lambda _: [][0])

    assert trace.parameter is not None
    assert trace.parameter.tolist() == [-1]


def test_scopes_that_cross_are_asynchronous_beside_those_that_are_told() -> None:
    events = recorded(("a", SCOPE, 0, 5, 0), ("b", SCOPE, 3, 8, 0), ("told", SCOPE, 10, 11, 0), ("c", SCOPE, 20, 21, 0))
    told = replace(events, is_async=np.array([False, False, True, False]))

    assert built(told, *[OTHER] * 4).is_async.tolist() == [True, True, True, False]
