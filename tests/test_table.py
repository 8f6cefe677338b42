"""The text table: layout, units, order, limits."""

import pytest
from traces import event, make_trace

from mtprof_nb.tables.averages import EventList, key_averages
from mtprof_nb.tables.text_table import cut_front, format_memory, format_share, format_time, sort_attribute


@pytest.fixture
def rows():
    return key_averages(
        make_trace(
            [
                event("train", 0, 2_000_000, kind="scope"),
                event("aten::mm", 10_000, 1_510_000),
                event("aten::add", 1_600_000, 1_700_000),
                event("aten::add", 1_800_000, 1_900_000),
            ]
        )
    )


def names(table):
    """Names of the rows in the body of a table."""
    lines = table.splitlines()
    rules = [index for index, line in enumerate(lines) if line.startswith("---")]
    return [line.split()[0] for line in lines[rules[1] + 1 : rules[2]]]


def test_the_whole_table_as_torch_lays_it_out(rows):
    assert rows.table(sort_by="self_cpu_time_total").splitlines() == [
        "-------------  ------------  ------------  ------------  ------------  ------------  ------------  ",
        "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  ",
        "-------------  ------------  ------------  ------------  ------------  ------------  ------------  ",
        "     aten::mm        75.00%       1.500ms        75.00%       1.500ms       1.500ms             1  ",
        "        train        15.00%     300.000us       100.00%       2.000ms       2.000ms             1  ",
        "    aten::add        10.00%     200.000us        10.00%     200.000us     100.000us             2  ",
        "-------------  ------------  ------------  ------------  ------------  ------------  ------------  ",
        "Self CPU time total: 2.000ms",
        "Total: 2.000ms  Count: 4",
    ]


def test_unsorted_rows_keep_the_order_of_the_list(rows):
    assert names(rows.table()) == ["train", "aten::mm", "aten::add"]
    rows.reverse()
    assert names(rows.table()) == ["aten::add", "aten::mm", "train"]


@pytest.mark.parametrize(
    ("sort_by", "order"),
    [
        ("count", ["aten::add", "aten::mm", "train"]),
        ("cpu_time_total", ["train", "aten::mm", "aten::add"]),
        ("cpu_time_avg", ["train", "aten::mm", "aten::add"]),
        ("cpu_time", ["train", "aten::mm", "aten::add"]),
        ("self_cpu_time", ["aten::mm", "train", "aten::add"]),
        ("key", ["train", "aten::mm", "aten::add"]),
        ("cuda_time_total", ["aten::add", "aten::mm", "train"]),
        ("self_xpu_memory_usage", ["aten::add", "aten::mm", "train"]),
        ("npu_time", ["aten::add", "aten::mm", "train"]),
        ("input_shapes", ["aten::add", "aten::mm", "train"]),
        ("use_device", ["aten::add", "aten::mm", "train"]),
        ("is_user_annotation", ["train", "aten::add", "aten::mm"]),
        ("cpu_parent", ["aten::add", "aten::mm", "train"]),
    ],
)
def test_rows_are_sorted_the_largest_first_and_ties_by_name(rows, sort_by, order):
    assert names(rows.table(sort_by=sort_by)) == order


def test_sorting_for_the_table_leaves_the_list_as_it_is(rows):
    rows.table(sort_by="count")

    assert [row.key for row in rows] == ["train", "aten::mm", "aten::add"]


@pytest.mark.parametrize("empty", [False, True])
def test_an_unknown_sort_key_is_an_attribute_error_that_lists_the_keys(rows, empty):
    with pytest.raises(
        AttributeError, match=r"no attribute 'foo': sort by one of .*count.*cpu_time_avg.*self_cpu_time,"
    ):
        (EventList() if empty else rows).table(sort_by="foo")


def test_every_attribute_of_a_row_is_a_sort_key(rows):
    public = [name for name in dir(rows[0]) if not name.startswith("_") and "cuda" not in name]
    attributes = [name for name in public if not callable(getattr(rows[0], name))]

    for name in attributes:
        assert len(names(rows.table(sort_by=name))) == 3


def test_a_sort_key_of_another_device_means_the_device_attribute():
    attributes = ["device_time_total", "input_shapes"]

    assert sort_attribute("cuda_time_total", attributes) == "device_time_total"
    assert sort_attribute("privateuse1_time_total", attributes) == "device_time_total"
    assert sort_attribute("input_shapes", attributes) == "input_shapes"


@pytest.mark.parametrize(("limit", "shown"), [(0, 0), (1, 1), (2, 2), (100, 3), (-1, 3), (None, 3)])
def test_the_row_limit_limits_rows_and_not_totals(rows, limit, shown):
    table = rows.table(row_limit=limit)

    assert len(names(table)) == shown
    assert table.endswith("Total: 2.000ms  Count: 4\n")


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("s", ["0.000s", "0.002s", "0.002s"]),
        ("ms", ["0.300ms", "2.000ms", "2.000ms"]),
        ("us", ["300.000us", "2000.000us", "2000.000us"]),
    ],
)
def test_one_unit_for_all_times_where_asked(rows, unit, times):
    lines = rows.table(time_unit=unit).splitlines()

    _, _, own, _, total, average, _ = lines[3].split()
    assert [own, total, average] == times
    assert lines[-2:] == [f"Self CPU time total: {times[1]}", f"Total: {times[1]}  Count: 4"]


def test_an_unknown_unit_is_refused(rows):
    with pytest.raises(ValueError, match="time_unit should be one of: s, ms, us, not 'h'"):
        rows.table(time_unit="h")


def test_a_header_stands_above_a_rule_as_long_as_the_table(rows):
    first, second, third, *_ = rows.table(header="Cell [3]").splitlines()

    assert first == "=" * len(third.rstrip())
    assert second == "Cell [3]"


def test_top_level_rows_alone_where_asked(rows):
    table = rows.table(top_level_events_only=True, row_limit=1)

    assert "This report only display top-level ops statistics" in table
    assert names(table.partition("statistics")[2]) == ["train"]


def test_long_names_are_cut_at_their_column_and_whole_without_a_limit():
    rows = key_averages(make_trace([event("x" * 80, 0, 1000)]))

    assert f"\n{'x' * 52}...  " in rows.table()
    assert f"\n{'x' * 17}...  " in rows.table(max_name_column_width=20)
    assert "x" * 80 in rows.table(max_name_column_width=None)


def test_shapes_have_a_column_of_their_width():
    rows = key_averages(make_trace([event("mm", 0, 1000, shapes=((128, 256), (256, 512)))]), group_by_input_shape=True)

    assert rows.table().splitlines()[1].endswith("  # of Calls                  Input Shapes  ")
    assert rows.table().splitlines()[3].endswith("    [[128, 256], [256, 512]]  ")
    assert rows.table(max_shapes_column_width=14).splitlines()[3].endswith("  1  [[128, 256], [  ")


def test_frames_stand_below_one_another_cut_at_the_front():
    frames = (("/a/long/way/to/model.py", 12, "forward"), ("train.py", 3, "<module>"))
    rows = key_averages(make_trace([event("mm", 0, 1000, stack=frames)]), group_by_stack_n=2)

    lines = rows.table().splitlines()
    assert lines[1].rstrip().endswith("Source Location")
    column = lines[1].index("Source Location")
    assert [line[column:].rstrip() for line in lines[3:6]] == [
        "/a/long/way/to/model.py:12:forward",
        "train.py:3:<module>",
        "",
    ]
    assert "...model.py:12:forward  \n" in rows.table(max_src_column_width=22)


def test_memory_has_columns_where_it_was_recorded():
    allocations = [{"time_ns": 5, "nbytes": 3 * 1024**2}, {"time_ns": 6, "nbytes": -5}]
    rows = key_averages(make_trace([event("empty", 0, 1000)], allocations=allocations))

    header, line = rows.table().splitlines()[1], rows.table().splitlines()[3]
    assert "     CPU Mem  Self CPU Mem    # of Calls" in header
    assert "3.00 MB" in line
    assert "CUDA Mem" not in header


def test_a_device_has_columns_where_it_took_time_or_memory():
    rows = key_averages(
        make_trace(
            [
                event("mm", 0, 10_000),
                event("gemm", 5_000, 35_000, kind="kernel", device="CUDA", launcher=0),
                event("add", 40_000, 50_000),
                event("plus", 45_000, 55_000, kind="copy", device="CUDA", launcher=2),
                event("train", 5_000, 55_000, kind="device_scope", device="CUDA"),
            ],
            allocations=[{"time_ns": 5_000, "nbytes": 2048, "device": "CUDA"}],
        )
    )

    table = rows.table(sort_by="cuda_time_total")
    header = table.splitlines()[1]
    assert "   Self CUDA   Self CUDA %    CUDA total  CUDA time avg" in header
    assert "     CUDA Mem  Self CUDA Mem" in header
    mm = next(line for line in table.splitlines() if line.split()[:1] == ["mm"])
    assert mm.split()[6:10] == ["30.000us", "75.00%", "30.000us", "30.000us"]
    assert "Self CUDA time total: 40.000us\n" in table
    assert table.endswith("Total: 20.000us  Count: 5\n")
    assert len({len(line) for line in table.splitlines()[:8]}) == 1


def test_flops_are_in_the_unit_of_the_smallest():
    trace = make_trace(
        [
            event("mm", 0, 1000, flops=2_500_000),
            event("conv", 2000, 3000, flops=7_000_000_000),
            event("add", 4000, 4001),
        ]
    )
    table = key_averages(trace).table()

    assert table.splitlines()[1].endswith("  Total MFLOPs  ")
    assert [line.split()[-1] for line in table.splitlines()[3:6]] == ["2.500", "7000.000", "--"]


def test_overloads_have_a_column_where_they_were_asked_for():
    trace = make_trace([event("add", 0, 1000, overload="Tensor")])

    assert "Overload Name" in key_averages(trace, group_by_overload_name=True).table()
    assert "Overload Name" not in key_averages(trace).table()


def test_without_any_time_shares_are_not_numbers():
    table = key_averages(make_trace([event("instant", 5, 5)])).table()

    assert table.splitlines()[3].split()[1:4] == ["NaN", "0.000us", "NaN"]


def test_an_async_row_has_no_share_of_the_total():
    table = key_averages(make_trace([event("a", 0, 1000), event("rpc", 0, 5000, is_async=True, thread=2)])).table()

    rpc = next(line for line in table.splitlines() if line.split()[:1] == ["rpc"])
    assert rpc.split()[1:5] == ["0.00%", "0.000us", "0", "5.000us"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.000us"), (999.9994, "999.999us"), (1000, "1.000ms"), (999_999, "999.999ms"), (1_000_000, "1.000s")],
)
def test_times_have_the_unit_that_suits_them(value, text):
    assert format_time(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (-1024, "-1.00 KB"), (1536, "1.50 KB"), (1024**2, "1.00 MB"), (1024**3, "1.00 GB")],
)
def test_bytes_have_the_unit_that_suits_them(value, text):
    assert format_memory(value) == text


def test_shares_are_percentages():
    assert format_share(1, 8) == "12.50%"
    assert format_share(0, 0) == "NaN"


@pytest.mark.parametrize(
    ("width", "text"), [(20, "a/path.py"), (9, "a/path.py"), (8, "...th.py"), (3, "..."), (2, "..")]
)
def test_a_text_is_cut_at_its_front(width, text):
    assert cut_front("a/path.py", width) == text
