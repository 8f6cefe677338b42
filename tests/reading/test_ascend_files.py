"""Ascend's `trace_view.json`, from a small file with exact numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from chrome_files import facts, named

from mtprof_nb.model.trace import Frame
from mtprof_nb.reading import read

PROGRAM, DEVICE, RUNTIME, COMMUNICATION, OVERLAP = 700, 700 * 1024 + 416 + 1, 701, 702, 703


def _span(
    name: str, ts: str, dur: float, pid: int, tid: int = 5, cat: str | None = None, **args: Any
) -> dict[str, Any]:
    members = {key.replace("_", " "): value for key, value in args.items()}
    category = {} if cat is None else {"cat": cat}
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": members, **category}


def _flow(ph: str, cat: str, number: Any, ts: str, pid: int, tid: int) -> dict[str, Any]:
    return {"ph": ph, "bp": "e", "name": cat, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": cat}


EVENTS = [
    named("process_name", "Python", PROGRAM),
    named("process_name", "CANN", RUNTIME),
    named("process_name", "Ascend Hardware", DEVICE),
    named("process_name", "HCCL", COMMUNICATION),
    named("process_name", "Overlap Analysis", OVERLAP),
    named("thread_name", "Stream 2", DEVICE, 2),
    named("thread_name", "Group 0 Communication", COMMUNICATION, 0),
    _span(
        *("aten::mm", "1736405443863674.400", 90.5, PROGRAM),
        cat="cpu_op",
        Input_Dims="2,3;\r\n3,4;\r\n",
        Input_type="float;\r\nfloat;\r\nScalar",
        Call_stack="model.py(12): forward;\r\ntrain.py(3): main",
        Sequence_number=-1,
    ),
    _span("Enqueue", "1736405443863680.000", 5, PROGRAM, cat="enqueue"),
    _span("Dequeue@aclnnMm", "1736405443863690.000", 40, PROGRAM, tid=6, cat="dequeue"),
    _span("AscendCL@aclrtLaunchKernel", "1736405443863700.000", 10, RUNTIME, tid=6),
    _span("aclnnMm_MatMul", "1736405443863800.001", 50.6214, DEVICE, tid=2, Task_Type="AI_CORE"),
    _span("MEMCPY_ASYNC", "1736405443863900.000", 5, DEVICE, tid=2),
    _span("EVENT_WAIT", "1736405443863910.000", 5, DEVICE, tid=2),
    _span("Notify Wait", "1736405443863920.000", 5, DEVICE, tid=4),
    _span(
        *("hcom_allReduce__868_0_1", "1736405443863920.000", 50, COMMUNICATION),
        tid=0,
        data_type="FP32",
        count=1000,
    ),
    _span("PROFILING_DISABLE", "1736405443863980.000", 0.02, DEVICE, tid=4),
    _span("Computing", "1736405443863800.001", 50, OVERLAP, tid=0),
    _flow("s", "async_npu", 1, "1736405443863674.400", PROGRAM, 5),
    _flow("f", "async_npu", 1, "1736405443863800.001", DEVICE, 2),
    _flow("s", "HostToDevice", "9", "1736405443863705.000", RUNTIME, 6),
    _flow("f", "HostToDevice", "9", "1736405443863800.001", DEVICE, 2),
    _flow("s", "HostToDevice", "10", "1736405443863706.000", RUNTIME, 6),
    _flow("f", "HostToDevice", "10", "1736405443863900.000", DEVICE, 2),
    {"ph": "C", "name": "AI Core Freq", "ts": "1736405443756311.100", "pid": 9, "tid": 0, "args": {"MHz": 1800.0}},
]


def _file(folder: Path) -> Path:
    path = folder / "trace_view.json"
    for event in EVENTS:
        if event["name"].startswith("hcom"):
            event["args"] = {"data_type": "FP32", "count": 1000}
    path.write_text(json.dumps(EVENTS))
    return path


def test_processes_say_what_a_span_is(tmp_path: Path) -> None:
    trace = read(_file(tmp_path))

    assert facts(trace, "kind", "device", "device_index", "track") == [
        ("aten::mm", "op", "CPU", 0, "thread 5"),
        ("Enqueue", "runtime", "CPU", 0, "thread 5"),
        ("Dequeue@aclnnMm", "runtime", "CPU", 0, "thread 6"),
        ("AscendCL@aclrtLaunchKernel", "runtime", "CPU", 0, "thread 6"),
        ("aclnnMm_MatMul", "kernel", "NPU", 1, "stream 2"),
        ("MEMCPY_ASYNC", "copy", "NPU", 1, "stream 2"),
        ("EVENT_WAIT", "sync", "NPU", 1, "stream 2"),
        ("hcom_allReduce__868_0_1", "collective", "NPU", 30, "Group 0 Communication"),
        ("Notify Wait", "device_scope", "NPU", 1, "stream 4"),
        ("PROFILING_DISABLE", "sync", "NPU", 1, "stream 4"),
    ]
    assert [process.pid for process in trace.processes] == [PROGRAM]
    assert trace.notes == (
        "Rows of the vendor's overlap analysis, left out: 1.",
        "Samples of counters, left out: 1.",
    )


def test_times_in_texts_are_exact(tmp_path: Path) -> None:
    trace = read(_file(tmp_path))

    kernel = trace.names.index("aclnnMm_MatMul")
    row = trace.name.tolist().index(kernel)
    assert (trace.start_ns[0], trace.start_ns[row]) == (1_736_405_443_863_674_400, 1_736_405_443_863_800_001)
    assert trace.duration_ns[row] == 50_621


def test_a_kernel_knows_its_op_by_one_flow_and_its_launch_by_another(tmp_path: Path) -> None:
    trace = read(_file(tmp_path))

    found = {name: (launch, launcher) for name, launch, launcher in facts(trace, "launch", "launcher")}
    assert found["aclnnMm_MatMul"] == (3, 0)
    assert found["AscendCL@aclrtLaunchKernel"] == (-1, 0)
    assert found["MEMCPY_ASYNC"] == (3, 0), "no flow leads to it from an op, but one from a call of an op"
    assert found["EVENT_WAIT"] == (-1, -1)


def test_inputs_stacks_and_collectives_are_read(tmp_path: Path) -> None:
    trace = read(_file(tmp_path))

    assert trace.shapes[trace.shape[0]] == ((2, 3), (3, 4), ())
    assert trace.dtypes[trace.shape[0]] == ("float", "float", "Scalar")
    assert trace.stacks is not None
    assert trace.stacks.stack(trace.stack[0]) == [Frame("model.py", 12, "forward"), Frame("train.py", 3, "main")]
    assert [tuple(one) for one in trace.collectives] == [("allreduce", "868", -1, "float", 1000, 1000)]
    assert trace.moved_bytes.max() == 4_000


@pytest.mark.parametrize(
    ("trace", "beside", "rank"),
    [
        ("a/ASCEND_PROFILER_OUTPUT/trace_view.json", ["a/profiler_info_12.json"], 12),
        ("a/trace_view.json", ["a/profiler_info_3.json"], 3),
        ("a/trace_view.json", ["profiler_info_3.json"], -1),
        ("a/trace_view.json", ["a/profiler_info.json"], -1),
        ("a/trace_view.json", ["a/profiler_info_0.json", "a/profiler_info_1.json"], -1),
        ("rank7/trace_view.json", ["rank7/profiler_info_3.json"], 3),
        ("a/rank7_trace_view.json", ["a/profiler_info_3.json"], 7),
        ("rank7/ASCEND_PROFILER_OUTPUT/trace_view.json", [], 7),
    ],
)
def test_the_rank_is_in_the_name_of_a_file_beside(trace: str, beside: list[str], rank: int, tmp_path: Path) -> None:
    for name in (*beside, trace):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    _file(tmp_path).replace(tmp_path / trace)

    assert [process.rank for process in read(tmp_path / trace).processes] == [rank]
