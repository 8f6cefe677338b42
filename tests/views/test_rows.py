"""Rows of the operators table under each grouping, with exact numbers."""

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.shape_texts import shapes_and_types_text, shapes_text
from mtprof_nb.analysis.sort_keys import TORCH_KEYS, sort_column
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables import averages
from mtprof_nb.tables.operators.operator_rows import GROUPINGS, missing_flag, offered, rows, showing
from mtprof_nb.tables.text_table import sorted_rows


def cells(trace: Trace, grouping: str, sort: str = "self_ns") -> list[tuple[str, str, int, int, int]]:
    """Label, detail, calls, self and total of each row, in order."""
    found = rows(trace, grouping)
    keys = ("count", "self_ns", "total_ns")
    return [
        (found.label[row], found.detail[row], *(int(found.value[key][row]) for key in keys))
        for row in found.order(sort).tolist()
    ]


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [
            event("train", 0, 1_000, kind="scope", thread=1),
            event("linear", 100, 400, thread=1, line=("m.py", 7), shapes=((2, 3),), module="net.fc"),
            event("mm", 150, 350, thread=1, line=("m.py", 7), shapes=((2, 3), (3, 4)), module="net.fc", flops=48),
            event("mm", 500, 560, thread=1, line=("m.py", 9), shapes=((5, 5), (5, 5)), module="", flops=250),
            event("add", 0, 70, thread=2, line=("m.py", 9), shapes=((),), flops=-1),
        ]
    )


def test_by_op_scopes_are_no_rows_and_ties_are_in_order_of_names(trace: Trace) -> None:
    assert cells(trace, "op") == [
        ("mm", "", 2, 260, 260),
        ("linear", "", 1, 100, 300),
        ("add", "", 1, 70, 70),
    ]


def test_by_shapes_and_by_line_the_same_op_has_several_rows(trace: Trace) -> None:
    assert cells(trace, "shapes")[0] == ("mm", "[2, 3] float32, [3, 4] float32", 1, 200, 200)
    assert cells(trace, "line") == [
        ("mm", "m.py:7", 1, 200, 200),
        ("linear", "m.py:7", 1, 100, 300),
        ("add", "m.py:9", 1, 70, 70),
        ("mm", "m.py:9", 1, 60, 60),
    ]


def test_by_scope_a_row_holds_all_that_ran_in_it_once(trace: Trace) -> None:
    assert cells(trace, "scope") == [("train", "", 1, 1_000, 1_000), ("(no scope)", "", 1, 70, 70)]


def test_by_module_and_by_thread_the_time_of_ops_is_told_and_adds_up(trace: Trace) -> None:
    assert cells(trace, "module") == [
        ("net.fc", "", 2, 300, 300),
        ("(no module)", "", 1, 70, 70),
        ("(root)", "", 1, 60, 60),
        ("net", "", 0, 0, 300),
    ]
    assert cells(trace, "thread") == [("thread 1", "", 3, 360, 360), ("thread 2", "", 1, 70, 70)]
    assert [column.title for column in rows(trace, "thread").columns] == ["Ops", "Self", "Share", "FLOPs"]
    assert [column.title for column in rows(trace, "module").columns] == ["Ops", "Self", "Share", "Total", "FLOPs"]


def test_a_module_that_only_calls_others_has_a_row_with_their_time() -> None:
    trace = make_trace(
        [
            event("a", 0, 10, module="Net.blocks.0.fc"),
            event("b", 10, 30, module="Net.blocks.1.fc"),
            event("c", 30, 37, module="Head"),
        ]
    )

    assert cells(trace, "module") == [
        ("Net.blocks.1.fc", "", 1, 20, 20),
        ("Net.blocks.0.fc", "", 1, 10, 10),
        ("Head", "", 1, 7, 7),
        ("Net", "", 0, 0, 30),
        ("Net.blocks", "", 0, 0, 30),
        ("Net.blocks.0", "", 0, 0, 10),
        ("Net.blocks.1", "", 0, 0, 20),
    ]


def test_the_events_of_a_module_are_those_of_its_submodules_too() -> None:
    trace = make_trace([event("a", 0, 10, module="Net.fc"), event("b", 10, 30, module="Net2.fc"), event("c", 30, 40)])
    found = rows(trace, "module")

    assert found.events_of(found.label.index("Net")).tolist() == [True, False, False]
    assert found.events_of(found.label.index("Net2.fc")).tolist() == [False, True, False]


def test_the_total_of_a_module_has_its_submodules_and_no_module_of_a_similar_name() -> None:
    trace = make_trace(
        [
            event("a", 0, 10, module="Net"),
            event("b", 10, 30, module="Net.body.0"),
            event("c", 30, 70, module="Net.body"),
            event("d", 70, 150, module="Net.body.0.act"),
            event("e", 150, 157, module="Net.body2"),
        ]
    )

    assert {label: total for label, _, _, _, total in cells(trace, "module")} == {
        "Net": 157,
        "Net.body": 140,
        "Net.body.0": 100,
        "Net.body.0.act": 80,
        "Net.body2": 7,
    }


def test_what_ran_in_no_scope_is_the_same_with_frames_of_python_and_without() -> None:
    ops = [event("mm", 10, 30), event("add", 40, 50), event("train", 60, 90, kind="scope"), event("mm", 65, 85)]
    frames = [event("cell", 0, 1_000, kind="python"), event("f", 61, 89, kind="python")]
    expected = [("(no scope)", "", 2, 30, 30), ("train", "", 1, 30, 30)]

    assert cells(make_trace(ops), "scope") == expected
    assert cells(make_trace([*ops, *frames]), "scope") == expected


def test_every_event_of_a_thread_points_to_its_row(trace: Trace) -> None:
    found = rows(trace, "op")
    labels = [found.label[row] if row >= 0 else None for row in found.of_event.tolist()]

    assert labels == [None, "add", "linear", "mm", "mm"]


def test_an_only_child_of_its_namesake_belongs_to_its_row() -> None:
    trace = make_trace([event("to", 0, 100), event("to", 10, 90)])
    found = rows(trace, "op")

    assert (found.value["count"].tolist(), found.of_event.tolist()) == ([1], [0, 0])


def test_numbers_are_sorted_as_numbers_and_the_average_is_of_one_call(trace: Trace) -> None:
    found = rows(trace, "op")

    assert [found.label[row] for row in found.order("average_ns")] == ["linear", "mm", "add"]
    assert [found.label[row] for row in found.order("flops")] == ["mm", "add", "linear"]
    assert [found.label[row] for row in found.order("count", descending=False)] == ["add", "linear", "mm"]
    assert [found.label[row] for row in found.order("label", descending=False)] == ["add", "linear", "mm"]


def test_columns_are_there_when_they_were_recorded(trace: Trace) -> None:
    plain = make_trace([event("mm", 0, 1)])
    kernels = make_trace([event("mm", 0, 9), event("k", 2, 6, kind="kernel", device="CUDA", launcher=0)])
    memory = make_trace([event("mm", 0, 9)], allocations=[{"time_ns": 3, "nbytes": 64, "event": 0}])

    assert [column.title for column in rows(plain).columns] == ["Calls", "Self", "Share", "Total", "Average"]
    assert [column.title for column in rows(trace).columns][5:] == ["FLOPs"]
    assert [column.title for column in rows(kernels).columns][5:] == ["Self device", "Device %", "Device", "Dev avg"]
    assert rows(kernels).value["device_ns"].tolist() == [4, 4]
    assert rows(kernels).wholes["self_device_ns"] == 4
    assert [column.title for column in rows(kernels, "scope").columns][5:] == ["Device"]
    assert rows(memory).value["self_bytes"].tolist() == [64]


def test_what_an_op_allocated_is_told_with_what_it_called_and_each_byte_once() -> None:
    trace = make_trace(
        [
            event("norm", 0, 100, module="a"),
            event("empty", 10, 20, module="a"),
            event("norm", 30, 60, module="b"),
            event("empty", 40, 50, module="b"),
            event("free", 110, 120, module="b"),
        ],
        allocations=[
            {"time_ns": 15, "nbytes": 64, "event": 1},
            {"time_ns": 45, "nbytes": 512, "event": 3},
            {"time_ns": 115, "nbytes": -576, "event": 4},
        ],
    )

    def allocated(grouping: str) -> dict[str, int]:
        found = rows(trace, grouping)
        return dict(zip(found.label, found.value["allocated_bytes"].tolist(), strict=True))

    assert allocated("op") == {"norm": 576, "empty": 576, "free": 0}
    assert allocated("module") == {"a": 64, "b": 512}
    assert allocated("thread") == {"thread 1": 576}
    assert [column.title for column in rows(trace).columns][-1] == "Allocated"


def test_where_the_allocator_tells_nothing_the_column_has_the_change_around_each_op() -> None:
    trace = make_trace([event("mm", 0, 9, memory=(0, 64)), event("free", 10, 19, memory=(64, 0))])
    found = rows(trace)

    assert found.columns[-1].title == "Memory"
    assert [found.label[row] for row in found.order(sort_column("memory"))] == ["mm", "free"]


def test_python_frames_are_rows_only_when_everything_is_to_be_shown() -> None:
    trace = make_trace([event("frame", 0, 100, kind="python"), event("mm", 10, 20)])

    assert rows(trace).label == ["mm"]
    assert rows(trace, show_all=True).label == ["frame", "mm"]


def test_a_grouping_names_the_flag_it_lacks() -> None:
    bare = make_trace([event("mm", 0, 1)])

    assert {key: missing_flag(bare, key) for key in offered(bare)} == {
        "op": "",
        "shapes": "--record-shapes",
        "types": "--record-shapes",
        "line": "--with-stack",
        "scope": "",
        "module": "--with-modules",
        "thread": "",
    }


def test_a_sort_key_is_torchs_or_ours_and_an_unknown_one_lists_them() -> None:
    assert [sort_column(key) for key in (None, "cpu_time_total", "self_cpu_time", "memory", "flops")] == [
        "self_ns",
        "total_ns",
        "self_ns",
        "allocated_bytes",
        "flops",
    ]
    with pytest.raises(AttributeError, match=r"'speed'.*sort by one of .*self_cpu_time_total"):
        sort_column("speed")


@pytest.mark.parametrize("key", TORCH_KEYS)
def test_the_panel_is_sorted_by_the_very_column_that_the_text_table_is_sorted_by(key: str) -> None:
    trace = make_trace(
        [
            event("linear", 0, 100, device="CUDA"),
            event("mm", 10, 30, device="CUDA", flops=5),
            event("copy", 40, 90),
            event("ones", 200, 300),
            event("gemm", 20, 70, kind="kernel", device="CUDA", launcher=1),
            event("fill", 250, 290, kind="kernel", device="CUDA", launcher=3),
        ],
        allocations=[
            {"time_ns": 20, "nbytes": 700, "event": 1, "device": "CUDA"},
            {"time_ns": 50, "nbytes": 300, "event": 2},
            {"time_ns": 220, "nbytes": 200, "event": 3},
            {"time_ns": 230, "nbytes": 600, "event": 3, "device": "CUDA"},
        ],
    )
    column = sort_column(key)
    found = showing(rows(trace), column)

    assert [found.label[row] for row in found.order(column)] == [
        row.key for row in sorted_rows(averages.key_averages(trace), key)
    ]
    assert column in [shown.key for shown in found.columns] or column == "label"


def test_types_stand_beside_shapes_and_divide_rows_of_one_shape() -> None:
    inputs = [(((2, 3), ()), (dtype, "Scalar")) for dtype in ("float", "double", "float")]
    trace = make_trace(
        [event("add", at, at + 1, shapes=shapes, dtypes=dtypes) for at, (shapes, dtypes) in enumerate(inputs)]
    )

    assert [(row[1], row[2]) for row in cells(trace, "shapes")] == [
        ("[2, 3] float32, []", 2),
        ("[2, 3] float64, []", 1),
    ]
    assert [(row[1], row[2]) for row in cells(trace, "types")] == [("float32", 2), ("float64", 1)]
    assert shapes_and_types_text(((2,), (3,)), ("c10::Half", "long int")) == "[2] float16, [3] int64"
    assert shapes_and_types_text(((2,), (3,)), ()) == "[2] [3]"


def test_shapes_read_as_torch_writes_them() -> None:
    assert shapes_text(((2, 3), (), ((4,), (5, 6)))) == "[2, 3] [] [[4], [5, 6]]"


def of_kernels() -> Trace:
    on = {"device": "CUDA", "thread": 7, "launcher": 0}
    launched = {"grid": "[4, 1, 1]", "block": "[128, 1, 1]", "est. achieved occupancy %": "50"}
    return make_trace(
        [
            event("aten::mm", 0, 9),
            event("gemm", 100, 500, kind="kernel", extra=launched, **on),
            event("gemm", 600, 800, kind="kernel", extra=launched, **on),
            event("gemm", 900, 1_000, kind="kernel", **{**on, "thread": 8}),
            event("Memcpy HtoD (Pageable -> Device)", 1_000, 1_300, kind="copy", moved_bytes=6_000, **on),
        ]
    )


def test_kernels_have_their_op_stream_grid_occupancy_and_bytes() -> None:
    found = rows(of_kernels(), "kernel")
    order = found.order("device_ns").tolist()

    assert [(found.label[row], found.detail[row]) for row in order] == [
        ("gemm", "aten::mm, stream 7, grid 4×1×1, block 128×1×1"),
        ("Memcpy HtoD (Pageable -> Device)", "aten::mm, stream 7"),
        ("gemm", "aten::mm, stream 8"),
    ]
    assert [column.title for column in found.columns] == [
        *("Calls", "Device", "Device %", "Average", "Min", "Max", "Occupancy", "Bytes", "Bandwidth"),
    ]
    assert {key: found.value[key][order].tolist() for key in ("count", "device_ns", "device_average_ns")} == {
        "count": [2, 1, 1],
        "device_ns": [600, 300, 100],
        "device_average_ns": [300, 300, 100],
    }
    assert (found.value["shortest_ns"][order[0]], found.value["longest_ns"][order[0]]) == (200, 400)
    assert found.value["occupancy"][order].tolist() == [50, -1, -1]
    assert found.value["moved_bytes"][order].tolist() == [0, 6_000, 0]
    assert found.value["bytes_per_s"][order[1]] == 20_000_000_000
    assert found.events_of(order[0]).tolist() == [False, True, True, False, False]


def test_kernels_are_sorted_by_their_time_on_the_device_unless_asked_otherwise() -> None:
    found = rows(of_kernels(), "kernel")

    assert found.default_sort == "device_ns"
    assert found.order("device_share").tolist() == found.order("device_ns").tolist()
    assert rows(of_kernels()).default_sort == "self_ns"


def test_kernels_are_a_grouping_only_where_there_are_any() -> None:
    assert "kernel" in offered(of_kernels())
    assert set(GROUPINGS) - set(offered(make_trace([event("mm", 0, 1)]))) == {"kernel", "region"}


def test_columns_of_kernels_are_those_that_were_recorded() -> None:
    bare = make_trace([event("k", 0, 1, kind="kernel", device="CUDA")])

    assert [column.title for column in rows(bare, "kernel").columns][-1] == "Max"
