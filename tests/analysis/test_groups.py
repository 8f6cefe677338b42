"""Groups of events by any keys, beside a plain loop."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.analysis.groups import KEYS, Key, flat_shapes, frames_key, group, innermost_frames, innermost_scopes
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Track, empty_trace
from mtprof_nb.tables.operators.operator_rows import GROUPINGS, rows


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

    assert group(trace, "name", "device").count.tolist() == [2]
    assert group(trace, "name", "device", "kind").count.tolist() == [1, 1]


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
        return group(trace, "name", frames_key(count)).of_event.tolist()

    assert groups(1) == [0, 0, 0, 0, 1, 2]
    assert groups(2) == [0, 1, 0, 2, 3, 4]
    assert groups(9) == [0, 1, 0, 2, 3, 4]


def test_without_stacks_all_frames_are_alike():
    trace = make_trace([event("a", 0, 1), event("b", 2, 3)])

    assert innermost_frames(trace, 3).tolist() == [-1, -1]


def of_column(numbers):
    return Key(lambda _: np.array(numbers, np.int64), lambda _: numbers.__getitem__)


def test_ones_own_column_is_a_key_whatever_numbers_it_holds():
    trace = make_trace([event("a", at, at) for at in range(4)])

    assert group(trace, of_column([-5, 10**12, -5, 7])).of_event.tolist() == [0, 1, 0, 2]


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

    groups = group(trace, of_column([row[0] for row in rows]), of_column([row[1] for row in rows]))

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
    assert group(first, "thread", "scope", "overload").values(first) == [(("process 0", "thread", 0), None, None)]


def test_a_line_of_a_cell_is_known_by_the_text_of_the_cell():
    def recorded(files, texts):
        rows = [
            event("mm", 10 * at, 10 * at + 5, line=(file, 3), stack=[(file, 3, "f"), ("m.py", 1, "g")])
            for at, file in enumerate(files)
        ]
        trace = make_trace(rows, sources=dict(zip(files, texts, strict=True)))
        return [group(trace, key).values(trace) for key in ("line", frames_key(2))]

    files = ["<ipython-input-3-ab>", "/home/me/ipykernel_7/12.py", "<ipython-input-9-cd>", "m.py"]
    others = ["<ipython-input-4-ef>", "/home/me/ipykernel_8/34.py", "<ipython-input-8-gh>", "m.py"]
    cells, texts = ["f()", "g()", "f()"], ["f()", "g()", "f()", "f()"]

    assert recorded(files, texts) == recorded(others, texts)
    lines, frames = recorded(files, texts)
    assert len(set(lines)) == len(set(frames)) == len(files), "two cells of one text are two"
    assert lines[-1] == (("m.py", 3),)
    assert set(lines).isdisjoint(recorded(files[:3], [f"{text} # new" for text in cells])[0])


def test_threads_of_one_name_are_told_apart_by_their_order():
    def recorded(first, second):
        trace = make_trace([event("mm", 0, 5, thread=first), event("mm", 10, 15, thread=second)])
        return replace(trace, tracks=(Track(first, "w"), Track(second, "w")))

    trace, other = recorded(71, 72), recorded(81, 82)

    assert group(trace, "thread").values(trace) == group(other, "thread").values(other)
    assert group(trace, "thread").values(trace) == [(("process 0", "w", 0),), (("process 0", "w", 1),)]
    assert rows(trace, "thread").label == ["w", "w"]


@pytest.mark.parametrize("keys", [*((key,) for key in KEYS), *(way.keys for way in GROUPINGS.values())])
def test_no_two_groups_have_equal_values(keys):
    cells, on_device = ("<ipython-input-3-ab>", "<ipython-input-4-cd>"), {"device": "NPU", "kind": "kernel"}
    events = [
        event("mm", 0, 90, line=(cells[0], 1), stack=[(cells[0], 1, "f")], shapes=((2,),), module="a", overload="x"),
        event("mm", 1, 80, line=(cells[1], 1), stack=[(cells[1], 1, "f")], shapes=((3,),), module="b", thread=2),
        event("mm", 2, 70, line=("m.py", 1), stack=[("m.py", 1, "f")], device="NPU", overload="y", thread=3),
        event("scope", 3, 60, kind="scope", thread=3),
        event("Torch-Compiled Region: 0/0", 3, 55, thread=3),
        event("mm", 4, 50, thread=3),
        event("mm", 5, 40, thread=7, **on_device),
        event("mm", 6, 30, thread=7, device_index=1, **on_device),
    ]
    named = make_trace(events, sources=dict.fromkeys(cells, "f()"))
    tracks = tuple(track._replace(name="w" if track.kind == "thread" else track.name) for track in named.tracks)
    one = replace(named, tracks=tracks)
    for trace in (one, merge([one, replace(one, processes=(one.processes[0]._replace(pid=9),))])):
        for key in (keys, (*keys, frames_key(1)), ("thread", *keys)):
            groups = group(trace, *key)
            assert len(set(groups.values(trace))) == len(groups) > 1
