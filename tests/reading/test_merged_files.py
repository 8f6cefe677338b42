"""Files that a tool merged, such as SGLang's profiler: the label of a rank stands before each number of a process."""

from pathlib import Path
from typing import Any

import pytest

from mtprof_nb.model.trace import Trace
from mtprof_nb.reading import read
from tests.reading.chrome_files import facts, flow, named, span, written


def _of_rank(label: str, pid: int, device: int, at: float) -> list[dict[str, Any]]:
    """Events of one rank. Its numbers of calls, nodes, threads and flows are those of every other rank."""
    events = [
        named("process_name", "python", pid),
        named("process_labels", f"GPU {device}", device),
        span("train.py(1): train", at, 100, "python_function", pid=pid, Python_id=1, Python_parent_id=None),
        span(f"{label}.py(5): step", at + 1, 90, "python_function", pid=pid, Python_id=2, Python_parent_id=1),
        span("aten::mm", at + 2, 10, pid=pid, External_id=4, Sequence_number=7, Fwd_thread_id=0),
        span("cudaLaunchKernel", at + 3, 2, "cuda_runtime", pid=pid, External_id=4, correlation=9),
        span("gemm", at + 6, 20, "kernel", pid=device, tid=7, correlation=9, device=device, stream=7),
        span("MmBackward0", at + 40, 10, pid=pid, tid=2, External_id=5, Sequence_number=7, Fwd_thread_id=1),
        flow("s", 3, at + 2, "fwdbwd", pid=pid),
        flow("f", 3, at + 40, "fwdbwd", pid=pid, tid=2),
        span("idle.py(1): wait", at, 90, "python_function", pid=0, tid=0, Python_id=8, Python_parent_id=None),
        span("Buffer Flush", at + 60, 1, "overhead", pid=-1, tid=0),
    ]
    return [one | {"pid": f"[{label}] {one['pid']}"} for one in events]


def test_kernels_stacks_and_links_stay_within_a_rank(tmp_path: Path) -> None:
    events = [*_of_rank("TP00", 4037, 0, 0), *_of_rank("TP01", 4037, 1, 1000)]

    trace = read(written(tmp_path, events))

    assert [(process.pid, process.label, process.rank) for process in trace.processes] == [
        (4037, "TP00", 0),
        (4037, "TP01", 1),
    ]
    names = ["train.py(1): train", "step", "aten::mm", "cudaLaunchKernel", "gemm", "MmBackward0", "Buffer Flush"]
    first = [name.replace("step", "TP00.py(5): step") for name in names]
    second = [name.replace("step", "TP01.py(5): step") for name in names]
    assert [name for (name,) in facts(trace)] == first + second
    assert trace.launch is not None
    assert trace.launcher is not None
    assert [trace.launch[row] for row in (4, 11)] == [3, 10]
    assert [trace.launcher[row] for row in (4, 11)] == [2, 9]
    assert [trace.forward[row] for row in (5, 12)] == [2, 9]
    assert trace.processes_of(trace.track).tolist() == [0] * 7 + [1] * 7
    assert [trace.tracks[trace.track[row]].device for row in (4, 11)] == ["CUDA:0", "CUDA:1"]
    assert trace.stack is not None
    assert trace.stacks is not None
    stacks = [[frame.file for frame in trace.stacks.stack(trace.stack[row])] for row in (2, 9)]
    assert stacks == [["TP00.py", "train.py"], ["TP01.py", "train.py"]]


def _launch(pid: int, device: int, at: float, correlation: int) -> list[dict[str, Any]]:
    return [
        span("cudaLaunchKernel", at, 2, "cuda_runtime", pid=pid, correlation=correlation),
        span("gemm", at + 6, 20, "kernel", pid=device, tid=7, correlation=correlation, stream=7),
    ]


@pytest.mark.parametrize("later_us", [0, 100_000])
def test_a_device_belongs_to_the_process_that_launches_its_kernels(tmp_path: Path, later_us: int) -> None:
    # Processes of one host, in a file without labels. In the second case, they use the same numbers for their calls.
    events = [*_launch(11, 0, 0, 5), *_launch(11, 0, 50, 6), *_launch(22, 1, later_us, 5), *_launch(22, 1, 70, 8)]
    events += _launch(22, 1, 200_000, 9)

    trace = read(written(tmp_path, events))

    assert trace.launch is not None
    kernels = [row for row, (name, kind) in enumerate(facts(trace, "kind")) if kind == "kernel"]
    process = trace.processes_of(trace.track)
    assert {(trace.tracks[trace.track[row]].device, int(process[row])) for row in kernels} == {
        ("CUDA:0", 0),
        ("CUDA:1", 1),
    }
    assert all(process[trace.launch[row]] == process[row] for row in kernels)


UNCLEAR = "Devices that several processes may have used, shown as used by one of them: {}."


def _users(trace: Trace) -> dict[str, set[tuple[int, int]]]:
    """For each device the numbers of the processes that its kernels belong to, and of those that launched them."""
    assert trace.launch is not None
    pids = [trace.processes[one].pid for one in trace.processes_of(trace.track).tolist()]
    found: dict[str, set[tuple[int, int]]] = {}
    for row in trace.on_device.nonzero()[0].tolist():
        found.setdefault(trace.tracks[trace.track[row]].device, set()).add((pids[row], pids[trace.launch[row]]))
    return found


@pytest.mark.parametrize("first_at", [0, 2])
def test_processes_with_equal_numbers_and_times_have_a_device_each(tmp_path: Path, first_at: int) -> None:
    # All kernels of both devices begin after the launches of both processes, whichever begins first.
    events = [one for i in range(5) for one in _launch(11, 0, first_at + 100 * i, i + 1)]
    events += [one for i in range(5) for one in _launch(22, 1, 1 + 100 * i, i + 1)]

    trace = read(written(tmp_path, events))

    assert _users(trace) == {"CUDA:0": {(11, 11)}, "CUDA:1": {(22, 22)}}
    assert trace.notes == (UNCLEAR.format(2),)


def test_a_device_goes_to_the_process_that_has_none_yet(tmp_path: Path) -> None:
    # The second device has a kernel of the second process alone; that of the first one can be of both.
    events = [*_launch(22, 1, 0, 5), *_launch(22, 1, 50, 6), *_launch(11, 0, 1, 5)]

    trace = read(written(tmp_path, events))

    assert _users(trace) == {"CUDA:0": {(11, 11)}, "CUDA:1": {(22, 22)}}
    assert trace.notes == (UNCLEAR.format(1),)


def test_a_device_more_than_processes_stays_with_the_first(tmp_path: Path) -> None:
    events = [*_launch(11, 0, 0, 5), *_launch(22, 1, 1, 5)]
    events.append(span("gemm", 9, 20, "kernel", pid=2, tid=7, correlation=5, stream=7))

    trace = read(written(tmp_path, events))

    assert _users(trace) == {"CUDA:0": {(11, 11)}, "CUDA:1": {(22, 22)}, "CUDA:2": {(11, 11)}}
    assert trace.notes == (UNCLEAR.format(3),)


def test_labels_tell_the_processes_of_devices_with_equal_numbers_and_times(tmp_path: Path) -> None:
    trace = read(written(tmp_path, [*_of_rank("TP00", 10, 0, 0), *_of_rank("TP01", 20, 1, 1)]))

    assert _users(trace) == {"CUDA:0": {(10, 10)}, "CUDA:1": {(20, 20)}}
    assert UNCLEAR.format(2) not in trace.notes


@pytest.mark.parametrize(
    ("label", "rank"), [("TP03", 3), ("Rank 12", 12), ("rank-7", 7), ("TP00-DP01", -1), ("node", -1)]
)
def test_a_label_with_one_number_is_the_rank(tmp_path: Path, label: str, rank: int) -> None:
    events = [*_of_rank(label, 10, 0, 0), *_of_rank("TP99", 10, 1, 500)]

    assert [process.rank for process in read(written(tmp_path, events)).processes] == [rank, 99]
