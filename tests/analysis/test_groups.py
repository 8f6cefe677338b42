"""Groups of events by any keys, beside a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.analysis.groups import KEYS, flat_shapes, group, innermost_frames, innermost_scopes
from mtprof_nb.model.trace import empty_trace


def names(trace, groups):
    return [trace.names[trace.name[first]] for first in groups.first.tolist()]


def test_groups_come_in_order_of_appearance_with_their_sums():
    trace = make_trace(
        [event("b", 0, 100), event("a", 10, 30), event("a", 40, 50), event("b", 200, 205), event("c", 300, 300)]
    )

    groups = group(trace, "name")

    assert names(trace, groups) == ["b", "a", "c"]
    assert groups.of_event.tolist() == [0, 1, 1, 0, 2]
    assert groups.first.tolist() == [0, 1, 4]
    assert groups.count.tolist() == [2, 2, 1]
    assert groups.total_ns.tolist() == [105, 30, 0]
    assert groups.self_ns.tolist() == [75, 30, 0]
    assert len(groups) == 3


def test_what_averages_leave_out_is_in_no_group():
    trace = make_trace([event("a", 0, 100), event("a", 10, 90), event("aten::is_leaf", 200, 210), event("b", 300, 301)])

    groups = group(trace, "name")

    assert groups.of_event.tolist() == [0, -1, -1, 1]
    assert groups.first.tolist() == [0, 3]
    assert groups.count.tolist() == [1, 1]
    assert groups.self_ns.tolist() == [100, 1]


def test_profiler_steps_are_one_group():
    trace = make_trace([event(f"ProfilerStep#{step}", step * 10, step * 10 + 5, kind="scope") for step in range(3)])

    assert group(trace, "name").count.tolist() == [3]


def test_no_keys_give_one_group_of_everything():
    groups = group(make_trace([event("a", 0, 1), event("b", 2, 4)]))

    assert groups.count.tolist() == [2]
    assert groups.total_ns.tolist() == [3]


def test_flops_and_memory_and_device_time_are_summed():
    trace = make_trace(
        [
            event("mm", 0, 10, flops=100),
            event("mm", 20, 30, flops=50),
            event("add", 40, 50),
            event("gemm", 5, 25, kind="kernel", device="CUDA", launcher=0),
        ],
        allocations=[{"time_ns": 5, "nbytes": 64}, {"time_ns": 25, "nbytes": -8, "device": "CUDA"}],
    )

    groups = group(trace, "name", "device")

    assert names(trace, groups) == ["mm", "gemm", "add"]
    assert groups.flops.tolist() == [150, 0, 0]
    assert groups.cpu_bytes.tolist() == groups.self_cpu_bytes.tolist() == [64, 0, 0]
    assert groups.device_bytes.tolist() == groups.self_device_bytes.tolist() == [-8, 0, 0]
    assert groups.device_ns.tolist() == groups.self_device_ns.tolist() == [20, 20, 0]


def test_a_kernel_is_not_in_the_group_of_the_op_of_its_name():
    trace = make_trace([event("copy", 0, 10, device="NPU"), event("copy", 5, 15, device="NPU", kind="kernel")])

    assert group(trace, "name").count.tolist() == [2]
    assert group(trace, "name", "device").count.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("key", "facts"),
    [
        ("overload", [{"overload": "Tensor"}, {"overload": "out"}]),
        ("shapes", [{"shapes": ((2, 3),)}, {"shapes": ((3, 2),)}]),
        ("flat_shapes", [{"shapes": ((2, 3),)}, {"shapes": ((3, 2),)}]),
        ("line", [{"line": ("cell", 1)}, {"line": ("cell", 2)}]),
        ("module", [{"module": "encoder.0"}, {"module": "encoder.1"}]),
        ("thread", [{"thread": 1}, {"thread": 2}]),
        ("kind", [{"kind": "op"}, {"kind": "python"}]),
        ("device", [{"device": "CPU"}, {"device": "NPU"}]),
    ],
)
def test_a_key_divides_a_name_into_groups(key, facts):
    rows = [event("mm", 10 * index, 10 * index + 5, **fact) for index, fact in enumerate([*facts, facts[0]])]
    trace = make_trace(rows)

    groups = group(trace, "name", key)

    assert groups.of_event.tolist() == [0, 1, 0]


@pytest.mark.parametrize("key", sorted(set(KEYS) - {"name"}))
def test_a_key_that_was_not_recorded_divides_nothing(key):
    trace = make_trace([event("a", 0, 1), event("b", 2, 3)])

    assert group(trace, key).count.tolist() == [2]


def test_equal_shapes_of_different_element_types_are_one_group():
    trace = make_trace(
        [
            event("mm", 0, 1, shapes=((2, 2),), dtypes=("float",)),
            event("mm", 2, 3, shapes=((2, 2),), dtypes=("half",)),
        ]
    )

    assert group(trace, "name", "shapes").count.tolist() == [2]


def test_tensor_lists_divide_by_exact_shapes_and_not_by_torchs():
    trace = make_trace(
        [event("cat", 0, 1, shapes=(((2,), (3,)), ())), event("cat", 2, 3, shapes=(((4,), (5,)), ()))],
    )

    assert flat_shapes((((2,), (3,)), (), (1, 2))) == ((), (), (1, 2))
    assert group(trace, "name", "shapes").count.tolist() == [1, 1]
    assert group(trace, "name", "flat_shapes").count.tolist() == [2]


def test_a_group_by_scope_has_what_ran_in_the_innermost_scope():
    trace = make_trace(
        [
            event("outer", 0, 100, kind="scope"),
            event("mm", 1, 5),
            event("inner", 10, 50, kind="scope"),
            event("linear", 20, 40),
            event("addmm", 25, 35),
            event("outside", 200, 210),
            event("outer", 300, 400, kind="scope"),
            event("add", 310, 320),
        ]
    )

    assert innermost_scopes(trace).tolist() == [0, 0, 2, 2, 2, -1, 6, 6]
    assert group(trace, "scope").of_event.tolist() == [0, 0, 1, 1, 1, 2, 0, 0]


def test_stacks_are_told_apart_by_as_many_frames_as_asked():
    a, b, c = ("f.py", 1, "a"), ("f.py", 2, "b"), ("f.py", 3, "c")
    rows = [(a, b), (a, c), (a, b), (a,), (), (b, a)]
    trace = make_trace([event("mm", 10 * at, 10 * at + 5, stack=stack) for at, stack in enumerate(rows)])

    def groups(count):
        return group(trace, "name", innermost_frames(trace, count)).of_event.tolist()

    assert groups(1) == [0, 0, 0, 0, 1, 2]
    assert groups(2) == [0, 1, 0, 2, 3, 4]
    assert groups(9) == [0, 1, 0, 2, 3, 4]


def test_without_stacks_all_frames_are_alike():
    trace = make_trace([event("a", 0, 1), event("b", 2, 3)])

    assert innermost_frames(trace, 3).tolist() == [-1, -1]


def test_ones_own_column_is_a_key_whatever_numbers_it_holds():
    trace = make_trace([event("a", at, at) for at in range(4)])

    assert group(trace, np.array([-5, 10**12, -5, 7])).of_event.tolist() == [0, 1, 0, 2]


def test_an_unknown_key_is_a_key_error():
    with pytest.raises(KeyError, match="colour"):
        group(make_trace([event("a", 0, 1)]), "colour")


def test_an_empty_trace_has_no_groups():
    groups = group(empty_trace(), "name", "device", "scope", "shapes")

    assert len(groups) == 0
    assert groups.of_event.tolist() == groups.count.tolist() == []


wide = st.integers(-(10**15), 10**15) | st.integers(-1, 3)


@given(st.lists(st.tuples(wide, wide, st.integers(0, 50)), max_size=30))
def test_groups_are_those_of_a_dictionary(rows):
    trace = make_trace([event("op", 100 * at, 100 * at + row[2]) for at, row in enumerate(rows)])
    expected = {}
    for left, right, duration in rows:
        expected.setdefault((left, right), []).append(duration)

    groups = group(trace, np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64))

    assert groups.count.tolist() == [len(durations) for durations in expected.values()]
    assert groups.total_ns.tolist() == [sum(durations) for durations in expected.values()]


def test_a_group_tells_what_its_events_have_in_common_in_any_recording():
    def recorded(*rows):
        return make_trace([event("other", 0, 1, module="Other"), *rows])

    first = recorded(event("mm", 5, 9, shapes=((2, 3),), module="Net.fc", line=("m.py", 7)))
    second = recorded(event("mm", 50, 60, shapes=((2, 3),), module="Net.fc", line=("m.py", 7)))
    keys = ("name", "device", "kind", "shapes", "module", "line")

    (_, one), (_, two) = (group(trace, *keys).values(trace) for trace in (first, second))

    assert one == two == ("mm", "CPU", "op", ((2, 3),), "Net.fc", ("m.py", 7))
    assert group(first, "thread", "scope", "overload").values(first) == [("thread 1", None, None)]
