"""`prof.devices()`: rows of devices, kernels, copies and collectives, as objects, text and DataFrames."""

from typing import Any

import pytest
from traces import Row, event, make_trace

from mtprof_nb.analysis.devices.device_figures import DeviceFigures
from mtprof_nb.analysis.devices.kernel_groups import Direction, direction_of, kernel_groups
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Collective, Trace, empty_trace
from mtprof_nb.recording import Results
from mtprof_nb.tables.device_table import Devices


def on_gpu(name: str, start: int, end: int, kind: str = "kernel", **facts: Any) -> Row:
    return event(name, start, end, kind=kind, **{"device": "CUDA", "thread": 7, **facts})


def of_grid(grid: list[int], occupancy: int | None = None) -> dict[str, Any]:
    # Kineto gives each value as text.
    return {"grid": str(grid), "block": "[128, 1, 1]"} | (
        {} if occupancy is None else {"est. achieved occupancy %": str(occupancy)}
    )


def all_reduce(start: int, end: int, elements: int) -> Row:
    facts = Collective("all_reduce", "default", 2, "Float", elements, elements)
    kernel = "ncclDevKernel_AllReduce"
    return on_gpu(kernel, start, end, kind="collective", thread=9, collective=facts, moved_bytes=4 * elements)


def recording() -> Trace:
    return make_trace(
        [
            event("aten::mm", 0, 1_000),
            event("cudaLaunchKernel", 100, 200, kind="runtime", launcher=0),
            on_gpu("gemm", 1_000, 2_000, launch=1, launcher=0, extra=of_grid([4, 1, 1], 50)),
            on_gpu("gemm", 2_000, 5_000, launcher=0, extra=of_grid([4, 1, 1], 90)),
            on_gpu("gemm", 5_000, 5_500, launcher=0, extra=of_grid([8, 1, 1])),
            on_gpu("Memcpy HtoD (Pageable -> Device)", 5_500, 6_000, kind="copy", moved_bytes=4_000),
            on_gpu("Memcpy HtoD (Pageable -> Device)", 6_000, 6_500, kind="copy", moved_bytes=1_000),
            on_gpu("Memcpy DtoH (Device -> Pinned)", 6_500, 6_600, kind="copy"),
            all_reduce(6_000, 8_000, elements=64),
            all_reduce(8_000, 8_500, elements=32),
            on_gpu("ncclKernel_Broadcast", 8_500, 9_000, kind="collective", thread=9),
            on_gpu("gemm", 19_000, 20_000, launcher=0, thread=8, extra=of_grid([4, 1, 1])),
        ],
    )


class Recording(Results):
    trace = recording()


def test_a_recording_answers_with_a_row_a_device() -> None:
    (row,) = Recording().devices()

    assert str(row.device) == "cuda:0"
    assert (row.span_ns, row.busy_ns, row.idle_ns) == (19_000, 9_000, 10_000)
    assert (row.computing_ns, row.exposed_communication_ns, row.exposed_copies_ns) == (5_500, 3_000, 500)
    assert (row.kernels, row.copies, row.collectives, row.streams) == (4, 3, 3, 3)


def test_a_dataframe_has_a_row_a_device_and_a_column_a_figure() -> None:
    pytest.importorskip("pandas")
    frame = Devices(recording()).to_dataframe()

    assert list(frame["device"]) == ["cuda:0"]
    assert {
        *("busy_ns", "idle_ns", "computing_ns", "exposed_communication_ns", "exposed_copies_ns"),
        *("idle_host_ns", "idle_kernel_ns", "idle_synchronisation_ns", "idle_other_ns"),
        *("launch_delay_median_ns", "queue_max", "short_kernels", "copies", "collectives", "host_waiting_ns"),
    } <= set(frame.columns)
    assert frame.loc[0, "busy_ns"] == 9_000


def test_without_devices_the_answer_is_empty_and_no_error() -> None:
    pytest.importorskip("pandas")
    devices = Devices(make_trace([event("aten::mm", 0, 10)]))

    assert list(devices) == list(devices.kernels()) == list(devices.copies()) == list(devices.collectives()) == []
    assert devices.sentence == ""
    assert repr(devices) == "no device was recorded: no kernel ran, or the runtime reports none\n"
    assert len(devices.to_dataframe()) == len(devices.kernels().to_dataframe()) == 0
    assert "busy_ns" in devices.to_dataframe().columns
    assert list(Devices(empty_trace())) == []


def test_the_text_begins_with_the_sentence_and_has_a_column_a_device() -> None:
    late = make_trace(
        [
            on_gpu("a", 0, 4_000),
            event("cudaLaunchKernel", 50_000, 60_000, kind="runtime"),
            on_gpu("b", 96_000, 100_000, launch=1),
            on_gpu("c", 0, 10, device_index=1),
        ]
    )
    lines = repr(Devices(late)).splitlines()

    assert lines[0] == "the 2 GPUs are idle 92 % of their time, waiting for the host"
    assert lines[1].split() == ["cuda:0", "cuda:1"]
    parts = {line[:24].rstrip(): " ".join(line[24:].split()) for line in lines[3:]}
    assert parts["idle"] == parts["  host late"] == "92.0 µs (92.0 %) 0 µs (0 %)"
    assert parts["# of kernels"] == "2 1"


def test_kernels_are_grouped_by_name_op_stream_and_launch() -> None:
    kernels = [row for row in Devices(recording()).kernels() if row.kind == "kernel"]

    assert [(row.op, row.stream, row.grid, row.count, row.time_ns, row.min_ns, row.max_ns) for row in kernels] == [
        ("aten::mm", "stream 7", (4, 1, 1), 2, 4_000, 1_000, 3_000),
        ("aten::mm", "stream 8", (4, 1, 1), 1, 1_000, 1_000, 1_000),
        ("aten::mm", "stream 7", (8, 1, 1), 1, 500, 500, 500),
    ]
    assert [row.occupancy for row in kernels] == [80, None, None]
    assert kernels[0].block == (128, 1, 1)
    assert kernels[0].share == pytest.approx(4_000 / 9_600)


def test_keys_of_kernels_join_across_recordings() -> None:
    one, other = recording(), recording().take(list(range(11, -1, -1))).sorted()

    assert set(kernel_groups(one).groups.values(one)) == set(kernel_groups(other).groups.values(other))


def test_copies_have_direction_bytes_and_bandwidth() -> None:
    copies = Devices(recording()).copies()

    assert [(row.direction, row.memories, row.count, row.time_ns, row.moved_bytes, row.gb_per_s) for row in copies] == [
        ("HtoD", "Pageable -> Device", 2, 1_000, 5_000, 5.0),
        ("DtoH", "Device -> Pinned", 1, 100, None, None),
    ]


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("Memcpy PtoP (Device -> Device)", Direction("PtoP", "Device -> Device")),
        ("zeCommandListAppendMemoryCopy(M2D)", Direction("HtoD")),
        ("urEnqueueUSMMemcpy D2H", Direction("DtoH")),
        ("MEMCPY_ASYNC", Direction()),
    ],
)
def test_the_direction_of_a_copy_is_in_its_name(name: str, direction: Direction) -> None:
    assert direction_of(name) == direction


def test_collectives_have_group_type_and_bytes() -> None:
    collectives = Devices(recording()).collectives()

    assert [(row.name, row.group, row.group_size, row.dtype, row.count, row.moved_bytes) for row in collectives] == [
        ("all_reduce", "default", 2, "Float", 2, 384),
        ("ncclKernel_Broadcast", "", -1, "", 1, None),
    ]


def test_the_texts_of_rows_are_tables() -> None:
    assert repr(Devices(recording()).copies()).splitlines() == [
        "direction  memories            device  count      time   share     bytes  GB/s",
        "-" * 78,
        "HtoD       Pageable -> Device  cuda:0      2   1.00 µs  10.4 %  4.88 KiB  5.00",
        "DtoH       Device -> Pinned    cuda:0      1  0.100 µs   1.0 %         –     –",
    ]
    table = Devices(recording()).kernels().table(row_limit=1).splitlines()
    assert table[-1] == "showing 1 of 7 rows"
    assert " ".join(table[2].split()) == (
        "gemm kernel aten::mm stream 7 4x1x1 128x1x1 1.00 µs 3.00 µs 80 % cuda:0 2 4.00 µs 41.7 % – –"
    )


def test_devices_of_several_processes_are_rows_of_their_own() -> None:
    ranks = [make_trace([on_gpu("a", 0, 10 + rank)], rank=rank, pid=rank + 1) for rank in range(2)]
    rows: list[DeviceFigures] = list(Devices(merge(ranks)))

    assert [(str(row.device), row.busy_ns) for row in rows] == [("cuda:0 of rank 0", 10), ("cuda:0 of rank 1", 11)]
