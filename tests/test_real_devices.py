"""Figures of devices of real recordings, beside the answers of TraceLens and of Ascend's own profiler."""

from collections import Counter

import pytest
from real_traces import table, trace_path

import mtprof_nb as mtp
from mtprof_nb.advice.causes.where_time_went import where_time_went
from mtprof_nb.model.trace import KERNEL
from mtprof_nb.recording import Recording
from mtprof_nb.tables.device_table import Devices

WITH_ANSWERS = ("h100_bert_small", "h100_timesformer", "mi300_bert_small", "mi300_timesformer")
#: The names of TraceLens for our figures.
FIGURES = {
    "computation_time": "computing_ns",
    "exposed_comm_time": "exposed_communication_ns",
    "exposed_memcpy_time": "exposed_copies_ns",
    "busy_time": "busy_ns",
    "idle_time": "idle_ns",
    "total_time": "span_ns",
    "total_comm_time": "communication_ns",
    "total_memcpy_time": "copies_ns",
}


def loaded(name: str) -> Recording:
    return mtp.load(trace_path(name))


@pytest.fixture(scope="module", params=WITH_ANSWERS)
def recording(request: pytest.FixtureRequest) -> tuple[str, Recording]:
    return request.param, loaded(request.param)


def test_busy_idle_computing_and_exposed_time_equal_tracelens(recording: tuple[str, Recording]) -> None:
    name, found = recording
    (row,) = found.devices()
    expected = {line["type"]: float(line["time ms"]) for line in table(name, "gpu_timeline")}

    assert {theirs: getattr(row, ours) / 1e6 for theirs, ours in FIGURES.items()} == pytest.approx(expected, rel=1e-3)
    parts = (row.computing_ns, row.exposed_communication_ns, row.exposed_copies_ns, row.idle_ns)
    assert sum(parts) == row.span_ns


def test_idle_time_by_cause_is_all_idle_time(recording: tuple[str, Recording]) -> None:
    (row,) = recording[1].devices()

    causes = (row.idle_host_ns, row.idle_kernel_ns, row.idle_synchronisation_ns, row.idle_other_ns)
    assert sum(causes) == row.idle_ns


def test_kernels_by_op_and_stream_equal_tracelens(recording: tuple[str, Recording]) -> None:
    name, found = recording
    count, spent = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in found.devices().kernels():
        if row.kind == "kernel":
            count[row.op, row.name, row.stream] += row.count
            spent[row.op, row.name, row.stream] += row.time_ns
    expected = {
        (line["Parent cpu_op"], line["Kernel name"], f"stream {line['Kernel stream']}"): line
        for line in table(name, "kernel_summary")
    }

    assert count == {key: int(line["Kernel duration (µs)_count"]) for key, line in expected.items()}
    assert {key: ns / 1e3 for key, ns in spent.items()} == pytest.approx(
        {key: float(line["Kernel duration (µs)_sum"]) for key, line in expected.items()}, rel=1e-6
    )


def test_device_time_of_ops_equals_tracelens(recording: tuple[str, Recording]) -> None:
    name, found = recording
    spent = Counter[str]()
    for row in found.devices().kernels():
        spent[row.op] += row.time_ns
    expected = {line["name"]: float(line["total_direct_kernel_time_sum"]) for line in table(name, "ops_summary")}
    rows = {row.key: row.self_device_time_total for row in found.key_averages() if row.kind == "op"}

    assert {op: ns / 1e3 for op, ns in spent.items()} == pytest.approx(expected, rel=1e-3)
    assert {op: us for op, us in rows.items() if us} == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["ascend_rank0", "ascend_rank1"])
def test_kernels_of_ascend_equal_the_vendors_table(name: str) -> None:
    expected_count, expected_ns = Counter[str](), Counter[str]()
    for line in table(name, "kernel_details"):
        expected_count[line["Name"]] += 1
        expected_ns[line["Name"]] += round(float(line["Duration(us)"]) * 1_000)
    count, spent = Counter[str](), Counter[str]()
    for row in loaded(name).devices().kernels():
        if row.kind in ("kernel", "collective"):
            count[row.name] += row.count
            spent[row.name] += row.time_ns

    assert count == expected_count
    assert spent == pytest.approx(expected_ns, abs=2)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("h100_bert_small", "the GPU is idle 92 % of the time, waiting for the host"),
        (
            "h100_timesformer",
            "the GPU is busy 99 % of the 160 ms from the first kernel to the last, and the host waits for it; "
            "the recording takes 383 ms",
        ),
        ("mi300_bert_small", "the GPU is idle 89 % of the time, waiting for the host"),
        (
            "mi300_timesformer",
            "the GPU is busy 99 % of the 121 ms from the first kernel to the last, and the host waits for it; "
            "the recording takes 391 ms",
        ),
        ("a100_ddp_rank0", "the GPU is idle 76 % of the time, waiting for the host"),
        ("a100_before", "the GPU is busy 84 % of the time, and the host waits for it"),
        ("cpu_only", ""),
    ],
)
def test_the_sentence_of_real_recordings(name: str, sentence: str) -> None:
    assert loaded(name).devices().sentence == sentence


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a100_before", "49 % of the time on the GPU is the backward pass."),
        ("v100_after", "53 % of the time on the GPU is the backward pass."),
        ("h100_timesformer", "modeling_timesformer.py:200 causes 88 % of the time on the GPU."),
        ("ascend_rank0", "89 % of the busy time of the NPU is communication that no computing hides."),
        ("ascend_rank1", "87 % of the busy time of the NPU is communication that no computing hides."),
        ("a100_ddp_rank0", "39 % of the time in ops of this recording is the backward pass."),
        ("rtx2080ti_resnet", "68 % of this recording passed outside ops, mostly in DataLoader's next."),
    ],
)
def test_the_sentence_on_where_the_time_went_is_about_the_side_that_the_other_waits_for(
    name: str, sentence: str
) -> None:
    assert where_time_went(loaded(name).trace) == sentence


def test_collectives_and_copies_of_a_real_distributed_run() -> None:
    devices = loaded("a100_ddp_rank0").devices()

    assert [(row.name, row.group_size, row.dtype, row.count) for row in devices.collectives()] == [
        ("allreduce", 2, "Float", 15),
        ("broadcast", 2, "Float", 3),
        ("broadcast", 2, "Long", 3),
    ]
    assert [(row.direction, row.count, row.moved_bytes) for row in devices.copies()] == [("DtoD", 960, 307_323_096)]
    assert devices[0].overlap == pytest.approx(0.157, abs=0.001)


@pytest.mark.parametrize(
    "name", ["a100_before", "v100_after", "rtx2080ti_resnet", "ranks_rank0", "mi250_toy", "triton"]
)
def test_the_parts_of_any_device_sum_up(name: str) -> None:
    found = loaded(name)
    devices: Devices = found.devices()

    assert len(devices)
    for row in devices:
        parts = (row.computing_ns, row.exposed_communication_ns, row.exposed_copies_ns, row.idle_ns)
        causes = (row.idle_host_ns, row.idle_kernel_ns, row.idle_synchronisation_ns, row.idle_other_ns)
        assert (sum(parts), sum(causes)) == (row.span_ns, row.idle_ns)
    assert sum(row.kernels for row in devices) == int((found.trace.kind == KERNEL).sum())
