"""The list of averages: rows, list behaviour, regrouping, totals, DataFrame, files."""

import json
import subprocess
import sys

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.stacks.stack_metrics import METRICS
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.tables.averages import DATAFRAME_COLUMNS, EventList, FunctionEventAvg, key_averages
from mtprof_nb.tables.events import Events

A, B = ("f.py", 1, "a"), ("f.py", 2, "b")


@pytest.fixture
def trace():
    return make_trace(
        [
            event("train", 0, 100_000, kind="scope"),
            event("mm", 10_000, 30_000, shapes=((2, 3), (3, 2)), stack=(A, B), flops=24),
            event("mm", 40_000, 50_000, shapes=((4, 4), (4, 4)), stack=(B,), flops=128),
            event("add", 60_000, 65_000, shapes=((2, 2), ()), stack=(A, B)),
        ],
        allocations=[{"time_ns": 20_000, "nbytes": 64}, {"time_ns": 45_000, "nbytes": 128}],
    )


def keys(rows):
    return [row.key for row in rows]


def test_rows_come_in_order_of_appearance_with_times_in_microseconds(trace):
    train, mm, add = key_averages(trace)

    assert (train.key, train.count, train.cpu_time_total, train.self_cpu_time_total) == ("train", 1, 100.0, 65.0)
    assert (mm.key, mm.count, mm.cpu_time_total, mm.self_cpu_time_total, mm.cpu_time) == ("mm", 2, 30.0, 30.0, 15.0)
    assert (add.key, add.cpu_time_total_str) == ("add", "5.000us")
    assert (mm.cpu_memory_usage, train.cpu_memory_usage, train.self_cpu_memory_usage) == (192, 192, 0)
    assert mm.flops == 152


def test_calls_of_python_functions_have_rows_only_where_they_are_asked_for():
    trace = make_trace(
        [
            event("f.py(1): f", 0, 10_000, kind="python"),
            event("mm", 1_000, 5_000),
            event("f.py(1): f", 20_000, 21_000, kind="python"),
            event("f.py(1): f", 30_000, 31_000, kind="scope"),
        ]
    )
    everything = key_averages(trace, include_python_functions=True)

    assert [(row.key, row.count, row.self_cpu_time_total) for row in everything] == [
        ("f.py(1): f", 2, 7.0),
        ("mm", 1, 4.0),
        ("f.py(1): f", 1, 1.0),
    ]
    assert [(row.key, row.kind) for row in key_averages(trace)] == [("mm", "op"), ("f.py(1): f", "scope")]
    assert [row.kind for row in everything.key_averages()] == ["op", "scope"]
    assert len(everything.key_averages(include_python_functions=True)) == 3
    assert Events(trace).self_cpu_time_total == 12.0
    assert Events(trace).total_average().count == 4


def test_a_row_not_grouped_by_something_says_nothing_of_it(trace):
    mm = key_averages(trace)[1]

    assert (mm.input_shapes, mm.stack, mm.overload_name) == ("", [], "")
    assert (mm.device_type, mm.kind, mm.scope, mm.node_id, mm.use_device) == ("CPU", "op", 0, -1, None)
    assert (mm.is_async, mm.is_remote, mm.is_legacy, mm.is_user_annotation) == (False, False, False, False)


def test_rows_by_shape_carry_their_shapes(trace):
    rows = key_averages(trace, group_by_input_shape=True)

    assert [(row.key, row.input_shapes, row.count) for row in rows] == [
        ("train", [], 1),
        ("mm", [[2, 3], [3, 2]], 1),
        ("mm", [[4, 4], [4, 4]], 1),
        ("add", [[2, 2], []], 1),
    ]


def test_rows_by_stack_carry_as_many_frames_as_asked(trace):
    assert [(row.key, row.stack) for row in key_averages(trace, group_by_stack_n=1)] == [
        ("train", []),
        ("mm", ["f.py:1:a"]),
        ("mm", ["f.py:2:b"]),
        ("add", ["f.py:1:a"]),
    ]
    assert key_averages(trace, group_by_stack_n=5)[1].stack == ["f.py:1:a", "f.py:2:b"]


def test_rows_by_overload_carry_its_name():
    trace = make_trace([event("add", 0, 1, overload="Tensor"), event("add", 2, 3, overload="out")])

    assert [row.overload_name for row in key_averages(trace, group_by_overload_name=True)] == ["Tensor", "out"]
    assert keys(key_averages(trace)) == ["add"]


def test_the_same_name_on_two_devices_or_given_by_a_user_is_two_rows():
    trace = make_trace(
        [
            event("mm", 0, 1),
            event("mm", 2, 3, device="NPU"),
            event("mm", 4, 5, kind="scope"),
            event("mm", 6, 8, device="NPU", kind="kernel", launcher=1),
        ]
    )

    rows = key_averages(trace)

    assert [(row.device_type, row.is_user_annotation, row.kind) for row in rows] == [
        ("CPU", False, "op"),
        ("NPU", False, "op"),
        ("CPU", True, "scope"),
        ("NPU", False, "kernel"),
    ]
    assert [row.cpu_time_total for row in rows] == [0.001, 0.001, 0.001, 0]
    assert [row.self_device_time_total for row in rows] == [0, 0.002, 0, 0.002]
    assert {row.use_device for row in rows} == {"npu"}


def test_allocations_outside_of_all_events_are_a_row_in_its_place():
    trace = make_trace(
        [event("a", 10, 20), event("b", 30, 40), event("a", 50, 60)],
        allocations=[
            {"time_ns": 15, "nbytes": 1},
            {"time_ns": 25, "nbytes": 8},
            {"time_ns": 45, "nbytes": -16},
            {"time_ns": 70, "nbytes": 4},
        ],
    )

    rows = key_averages(trace)

    assert keys(rows) == ["a", "[memory]", "b"]
    assert (rows[1].count, rows[1].cpu_memory_usage, rows[1].self_cpu_memory_usage) == (3, -4, -4)
    assert (rows[1].cpu_time_total, rows[1].input_shapes, rows[1].stack) == (0, "", [])
    assert key_averages(trace, group_by_input_shape=True)[1].input_shapes == []


def test_a_row_is_not_subscriptable(trace):
    with pytest.raises(TypeError):
        key_averages(trace)[0]["key"]


def test_a_row_knows_the_family_of_its_first_event(trace):
    train, mm, _ = key_averages(trace)

    assert train.cpu_parent is None
    assert mm.cpu_parent.name == "train"
    assert [child.name for child in train.cpu_children] == ["mm", "mm", "add"]


def test_adding_a_row_of_the_same_key_merges_it(trace):
    first, second = key_averages(trace, group_by_input_shape=True)[1:3]

    assert first.add(second) is first
    assert (first.count, first.cpu_time_total, first.flops, first.cpu_memory_usage) == (2, 30.0, 152, 192)
    first += second
    assert first.count == 3


def test_an_empty_row_becomes_what_is_added_to_it(trace):
    row = FunctionEventAvg()
    row.add(Events(trace)[1]).add(Events(trace)[2])

    assert (row.key, row.count, row.cpu_time_total, row.input_shapes) == ("mm", 2, 30.0, [[2, 3], [3, 2]])
    assert row.cpu_parent.name == "train"


def test_adding_another_key_or_another_thing_is_refused(trace):
    train, mm, _ = key_averages(trace)

    with pytest.raises(AssertionError, match="expected the key 'train', not 'mm'"):
        train.add(mm)
    with pytest.raises(AssertionError, match="not dict"):
        train.add({})
    assert train.count == 1


def test_deprecated_names_warn_and_answer():
    row = key_averages(
        make_trace([event("op", 0, 10), event("k", 0, 2_000, kind="kernel", device="CUDA", launcher=0)])
    )[0]

    for name, value in (("cuda_time", 2.0), ("cuda_time_total", 2.0), ("self_cuda_memory_usage", 0)):
        with pytest.warns(FutureWarning, match=name):
            assert getattr(row, name) == value


def test_the_repr_of_a_row_has_no_address(trace):
    assert repr(key_averages(trace)[2]).startswith("<FunctionEventAvg key=add count=1 self_cpu_time=5.000us ")


def test_the_list_is_a_list_and_every_answer_is_about_what_it_holds(trace):
    rows = key_averages(trace)
    train, mm, add = rows

    rows.remove(train)
    assert rows.self_cpu_time_total == 35.0
    assert "train" not in rows.table()
    rows.append(add)
    rows.insert(0, train)
    rows.extend([mm])
    assert keys(rows) == ["train", "mm", "add", "add", "mm"]
    assert rows.total_average().count == 1 + 2 + 1 + 1 + 2
    assert (rows.count(add), rows.index(add)) == (2, 2)
    assert rows.pop() is mm
    rows.sort(key=lambda row: row.self_cpu_time_total)
    rows.reverse()
    assert keys(rows) == ["train", "mm", "add", "add"]
    rows.clear()
    assert rows == []
    assert rows.table() == ""
    assert rows.self_cpu_time_total == 0


def test_copies_and_slices_answer_too(trace):
    rows = key_averages(trace)

    for part in (rows.copy(), rows[1:]):
        assert isinstance(part, EventList)
        assert "CPU Mem" in part.table()
        assert "Total FLOPs" in part.table()
    assert rows.copy() == rows
    assert rows.copy() is not rows
    assert keys(rows[1:]) == ["mm", "add"]
    assert str(rows) == rows.table()


def test_the_total_is_one_row(trace):
    rows = key_averages(trace)
    total = rows.total_average()

    assert (total.key, total.count) == ("Total", 4)
    assert total.self_cpu_time_total == rows.self_cpu_time_total == 100.0
    assert total.cpu_time_total == 135.0
    assert keys(rows) == ["train", "mm", "add"]


def test_the_total_of_nothing_is_zero():
    rows = key_averages(empty_trace())
    total = rows.total_average()

    assert rows == []
    assert (total.key, total.count, total.cpu_time, total.self_cpu_time_total) == ("Total", 0, 0.0, 0.0)


def test_rows_can_be_grouped_again_by_less(trace):
    by_shape = key_averages(trace, group_by_input_shape=True)

    assert [(row.key, row.count, row.input_shapes) for row in by_shape.key_averages()] == [
        ("train", 1, ""),
        ("mm", 2, ""),
        ("add", 1, ""),
    ]
    assert [row.input_shapes for row in by_shape.key_averages(group_by_input_shapes=True)] == [
        row.input_shapes for row in by_shape
    ]
    assert keys(by_shape) == ["train", "mm", "mm", "add"]
    assert [row.count for row in by_shape] == [1, 1, 1, 1]


def test_rows_grouped_again_by_fewer_frames_keep_those(trace):
    rows = key_averages(trace, group_by_stack_n=2).key_averages(group_by_stack_n=1, group_by_overload_name=True)

    assert [row.stack for row in rows] == [[], ["f.py:1:a"], ["f.py:2:b"], ["f.py:1:a"]]


def test_a_dataframe_has_a_line_a_row(trace):
    pytest.importorskip("pandas")

    frame = key_averages(trace, group_by_input_shape=True).to_dataframe()

    assert tuple(frame.columns) == DATAFRAME_COLUMNS
    assert frame["key"].tolist() == ["train", "mm", "mm", "add"]
    assert frame["input_shapes"].tolist()[1] == [[2, 3], [3, 2]]
    assert frame.loc[frame["key"] == "mm", "self_cpu_time_total"].sum() == 30.0
    assert len(EventList().to_dataframe()) == 0


def test_without_pandas_the_error_says_how_to_get_it(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match="pip install pandas"):
        key_averages(trace).to_dataframe()


def test_the_chrome_trace_of_the_list_has_an_event_a_row(trace, tmp_path):
    path = tmp_path / "rows.json"

    key_averages(trace).export_chrome_trace(path)

    found = json.loads(path.read_text())["traceEvents"]
    assert [each["name"] for each in found] == ["train", "mm", "add"]
    assert {each["ph"] for each in found} == {"X"}
    assert [each["cat"] for each in found] == ["user_annotation", "cpu_op", "cpu_op"]
    assert found[1]["dur"] == 30.0
    assert found[1]["args"] == {"count": 2, "self_cpu_time_total": 30.0, "cpu_time_total": 30.0}
    assert all({"ts", "pid", "tid"} <= set(each) for each in found)


def test_stacks_of_rows_are_written_root_first(tmp_path):
    frames = (("my file.py", 1, "f;g"), ("main.py", 2, "<module>"))
    trace = make_trace(
        [event("mm", 0, 5_900, stack=frames), event("add", 10_000, 10_900, stack=frames), event("bare", 20_000, 30_000)]
    )
    path = tmp_path / "stacks.txt"

    key_averages(trace, group_by_stack_n=5).export_stacks(path, "self_cpu_time_total")

    assert path.read_text() == "main.py:2:<module>;my_file.py:1:f_g 5\n"


def test_stacks_can_be_weighed_by_device_time(tmp_path):
    trace = make_trace(
        [
            event("mm", 0, 5_000, stack=(A,)),
            event("gemm", 1_000, 9_000, kind="kernel", device="CUDA", launcher=0),
        ]
    )
    path = tmp_path / "stacks.txt"
    rows = key_averages(trace, group_by_stack_n=1)

    for metric in METRICS[1:]:
        rows.export_stacks(path, metric)
        assert path.read_text() == "f.py:1:a 8\n"


def test_an_unsupported_metric_is_refused_and_the_old_file_stays(trace, tmp_path):
    path = tmp_path / "stacks.txt"
    path.write_text("old")
    rows = key_averages(trace)

    assert rows.supported_export_stacks_metrics() == list(METRICS)
    with pytest.raises(ValueError, match=r"metric should be one of: .*'self_cpu_time_total'"):
        rows.export_stacks(path, "cpu_time_total")
    assert path.read_text() == "old"


def test_the_exporters_are_imported_only_when_a_file_is_written():
    program = (
        "import mtprof_nb.tables.averages, sys; print([m for m in sys.modules if m.startswith('mtprof_nb.export')])"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"
