"""Memory timelines in each of their forms."""

import gzip
import json
import re
from pathlib import Path

import pytest
from memory_traces import ALL, NOON, memory_trace, taken
from traces import event, make_trace

from mtprof_nb.analysis.devices.recorded_devices import Device
from mtprof_nb.analysis.memory.memory_categories import Category
from mtprof_nb.export import memory_timeline
from mtprof_nb.model.trace import Recorded, Trace


@pytest.fixture
def trace() -> Trace:
    return memory_trace()


def _sizes(**held: int) -> list[int]:
    return [0, *(held.get(category.name.lower(), 0) for category in Category)]


def test_json_holds_moments_and_sizes_by_category(trace: Trace, tmp_path: Path) -> None:
    memory_timeline.write(trace, tmp_path / "memory.json")
    moments, sizes = json.loads((tmp_path / "memory.json").read_text())

    microsecond = NOON // 1000
    assert moments == [microsecond + 1, microsecond + 1, microsecond + 2, microsecond + 3]
    assert sizes == [
        _sizes(unknown=300),
        _sizes(unknown=300, temporary=8),
        _sizes(unknown=300, temporary=8, activation=64),
        _sizes(unknown=200, activation=64),
    ]


def test_compressed_json_holds_the_same(trace: Trace, tmp_path: Path) -> None:
    memory_timeline.write(trace, tmp_path / "memory.json")
    memory_timeline.write(trace, tmp_path / "memory.json.gz")

    assert gzip.decompress((tmp_path / "memory.json.gz").read_bytes()) == (tmp_path / "memory.json").read_bytes()


def test_raw_json_holds_what_happened_to_each_block(trace: Trace, tmp_path: Path) -> None:
    memory_timeline.write(trace, tmp_path / "memory.raw.json.gz")

    assert json.loads(gzip.decompress((tmp_path / "memory.raw.json.gz").read_bytes())) == [
        [-1, 1, 100, Category.UNKNOWN],
        [-1, 1, 200, Category.UNKNOWN],
        [NOON + 1_000, 2, 8, Category.TEMPORARY],
        [NOON + 2_000, 2, 64, Category.ACTIVATION],
        [NOON + 3_000, 4, -8, Category.TEMPORARY],
        [NOON + 3_000, 4, -100, Category.UNKNOWN],
    ]


def test_the_sizes_add_up_to_the_allocators_own_count(trace: Trace) -> None:
    timeline = memory_timeline.memory_timeline(trace, Device("CPU", 0))

    assert timeline.sizes()[1].sum(axis=1).tolist() == [300, 308, 372, 264]


def test_a_peak_shorter_than_a_microsecond_is_told() -> None:
    rows = [{**taken(1, nbytes, address), "time_ns": NOON + ns} for nbytes, address, ns in ((64, 8, 0), (8, 16, 900))]
    rows += [taken(2, 32, 24), taken(2, -64, 8), taken(2, -8, 16), taken(3, -32, 24)]
    timeline = memory_timeline.memory_timeline(make_trace([event("a", NOON, NOON + 1)], rows), Device("CPU", 0))
    moments, held = timeline.sizes()

    assert (moments - NOON // 1000).tolist() == [0, 1, 2, 2, 3]
    assert held.sum(axis=1).tolist() == [64, 72, 104, 32, 0]


def test_what_a_window_leaves_is_gone_when_the_next_begins() -> None:
    first = [taken(1, 64, 8, 0, total=64), taken(2, 8, 16, 0, total=72), taken(3, -8, 16, 0, total=64)]
    second = [taken(51, 16, 8, total=16), taken(52, 4, 0, total=20)]
    third = [taken(91, 2, 8, total=2)]
    rows = [
        event("aten::mm", NOON, NOON + 10_000),
        event("MmBackward0", NOON + 60_000, NOON + 61_000, phase="backward", forward=0),
    ]
    trace = make_trace(rows, first + second + third)
    timeline = memory_timeline.memory_timeline(trace, Device("CPU", 0))

    assert timeline.nbytes.tolist() == [64, 8, -8, -64, 16, 4, -20, 2]
    assert timeline.category.tolist() == [4, 3, 3, 4, 7, 7, 7, 7]
    assert timeline.sizes()[1].sum(axis=1).tolist() == [64, 72, 64, 16, 20, 2]


@pytest.mark.parametrize("missing", ["record_shapes", "profile_memory", "with_stack"])
def test_each_of_the_three_flags_is_required(tmp_path: Path, missing: str) -> None:
    flags = {"record_shapes": True, "profile_memory": True, "with_stack": True, missing: False}
    trace = make_trace([event("a", 0, 1)], [], recorded=Recorded(**flags))
    message = "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        memory_timeline.write(trace, tmp_path / "memory.json")

    assert list(tmp_path.iterdir()) == []


def test_another_suffix_is_refused_with_the_list_of_those_there_are(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"memory\.png': let it end in one of \.json, \.json\.gz, \.raw\.json\.gz, \.html"
    ):
        memory_timeline.write(trace, tmp_path / "memory.png")


def test_a_device_that_was_not_recorded_is_refused_with_those_that_were(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no memory of device 'cuda:3' was recorded: recorded are cpu"):
        memory_timeline.write(trace, tmp_path / "memory.json", "cuda:3")


@pytest.mark.parametrize(
    ("wanted", "total"), [(None, 512), ("cpu", 10), ("cuda", 512), ("cuda:0", 512), ("CUDA:1", 1024)]
)
def test_the_device_is_the_one_named_and_by_default_the_first_that_is_not_the_cpu(
    tmp_path: Path, wanted: str | None, total: int
) -> None:
    rows = [event("a", 0, 10), event("b", 20, 30, device="CUDA")]
    allocations = [
        taken(1, 10, 8, total=10),
        taken(2, 512, 8, device="CUDA", total=512),
        taken(3, 1024, 8, device="CUDA", device_index=1, total=1024),
        taken(4, -1024, 8, device="CUDA", device_index=1, total=0),
    ]
    trace = make_trace(rows, allocations, recorded=ALL)
    timeline = memory_timeline.write(trace, tmp_path / "memory.json", wanted)

    assert timeline.sizes()[1].max() == total


def test_torchs_name_of_a_private_device_is_ours(tmp_path: Path) -> None:
    trace = make_trace([event("a", 0, 10, device="NPU")], [taken(1, 10, 8, device="NPU")], recorded=ALL)
    for name in ("npu", "npu:0", "privateuseone:0", "privateuse1"):
        assert str(memory_timeline.write(trace, tmp_path / "memory.json", name).device) == "npu:0"


def test_a_recording_without_allocations_is_an_empty_timeline(tmp_path: Path) -> None:
    trace = make_trace([event("a", 0, 1)], [], recorded=ALL)
    memory_timeline.write(trace, tmp_path / "memory.json")
    memory_timeline.write(trace, tmp_path / "memory.raw.json.gz")

    assert json.loads((tmp_path / "memory.json").read_text()) == [[], []]


def test_where_a_runtime_tells_only_totals_their_changes_are_of_unknown_category(tmp_path: Path) -> None:
    rows = [
        event("a", NOON, NOON + 5_000, memory=(10, 30)),
        event("b", NOON + 6_000, NOON + 9_000, memory=(30, 5)),
    ]
    timeline = memory_timeline.write(make_trace(rows, recorded=ALL), tmp_path / "memory.json")
    moments, sizes = json.loads((tmp_path / "memory.json").read_text())

    assert timeline.action.tolist() == [1, 2, 4]
    assert moments == [NOON // 1000 + 5, NOON // 1000 + 5, NOON // 1000 + 9]
    assert sizes == [_sizes(unknown=10), _sizes(unknown=30), _sizes(unknown=5)]
