"""Members and categories that Kineto's traces have had since 2021, from small files with exact numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from chrome_files import HOST, facts, flow, named, span, written

from mtprof_nb.model.trace import Frame, Trace
from mtprof_nb.reading import read

ENGINE = "autograd::engine::evaluate_function: "


def kinds(trace: Trace) -> dict[str, str]:
    return dict(facts(trace, "kind"))


def test_categories_of_2021_are_known(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 1, 50, "Operator", **{"Input dims": [[2, 3], [3, 4]], "External id": 4}),
        span("ProfilerStep#7", 0, 90, "Operator"),
        span("Optimizer.step#SGD.step", 60, 20, "Operator"),
        span("cudaLaunchKernel", 5, 3, "Runtime", **{"correlation": 4, "external id": 4}),
        span("gemm", 10, 30, "Kernel", pid=0, tid="stream 7", correlation=4, stream=7, device=0, **{"external id": 4}),
        span("Memcpy HtoD", 50, 5, "Memcpy", pid=0, tid=7, correlation=9, bytes=24),
        span("Memset (Device)", 56, 1, "Memset", pid=0, tid=7),
        span("PyTorch Profiler (0)", 0, 100, "Trace", pid="Spans", tid="PyTorch Profiler"),
    ]

    trace = read(written(tmp_path, events))

    assert kinds(trace) == {
        "ProfilerStep#7": "scope",
        "aten::mm": "op",
        "cudaLaunchKernel": "runtime",
        "gemm": "kernel",
        "Memcpy HtoD": "copy",
        "Memset (Device)": "set",
        "Optimizer.step#SGD.step": "scope",
    }
    assert [track.title for track in trace.tracks if track.kind == "stream"] == ["stream 7"]
    assert trace.shapes[trace.shape[1]] == ((2, 3), (3, 4))
    gemm = trace.names.index("gemm")
    assert (trace.launch[3], trace.launcher[3], trace.name[3]) == (2, 1, gemm)
    assert set(trace.step.tolist()) == {7}


def test_events_without_a_category_are_ops_or_kernels_of_the_older_exporter(tmp_path: Path) -> None:
    events = [
        {"name": "aten::mm", "ph": "X", "ts": 10.5, "dur": 4, "tid": 1, "pid": "CPU functions", "args": {}},
        {"name": "gemm", "ph": "X", "ts": 12, "dur": 9, "tid": 0, "pid": "CUDA functions", "args": {}},
        {
            "name": "mm",
            "ph": "s",
            "ts": 10.5,
            "tid": 1,
            "pid": "CPU functions",
            "id": 1,
            "cat": "cpu_to_cuda",
            "args": {},
        },
    ]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(events))

    assert facts(read(path), "kind", "start_ns", "duration_ns") == [
        ("aten::mm", "op", 10_500, 4_000),
        ("gemm", "kernel", 12_000, 9_000),
    ]


@pytest.mark.parametrize(
    ("category", "runtime", "device"),
    [
        ("xpu_runtime", "urEnqueueKernelLaunch", "XPU"),
        ("privateuse1_runtime", "launch", "NPU"),
        ("mtia_runtime", "run", "MTIA"),
        ("mlu_driver", "cnInvokeKernel", "MLU"),
        ("gcu_runtime", "topsLaunchKernel", "GCU"),
        ("musa_runtime", "musaLaunchKernel", "MUSA"),
    ],
)
def test_devices_are_named_after_their_runtime(tmp_path: Path, category: str, runtime: str, device: str) -> None:
    events = [
        span(runtime, 10, 5, category, correlation=3),
        span("gemm", 20, 5, "kernel", pid=2, tid=1, correlation=3, device=2, stream=1),
    ]

    assert facts(read(written(tmp_path, events)), "kind", "device", "device_index", "launch") == [
        (runtime, "runtime", "CPU", 0, -1),
        ("gemm", "kernel", device, 2, 0),
    ]


def test_tasks_of_mtia_devices_are_kernels_copies_and_waits(tmp_path: Path) -> None:
    events = [
        named("process_labels", "MTIA 17", pid=17),
        named("thread_name", "Stream 108", pid=17, tid=3774),
        span("fc-dtype_Float", 1, 5, "mtia_ccp_events", pid=17, tid=3774, stream=108),
        span("dma_request", 7, 5, "mtia_ccp_events", pid=17, tid=3774, stream=108, size=1024),
        span("event_wait", 13, 5, "mtia_ccp_events", pid=17, tid=3774, stream=108),
        span("synchronize", 19, 1, "mtia_runtime", pid=17, tid=3772, correlation=1),
        span("runFunction", 0, 1, "mtia_runtime", correlation=1),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "track")[1:] == [
        ("fc-dtype_Float", "kernel", "stream 108"),
        ("dma_request", "copy", "stream 108"),
        ("event_wait", "sync", "stream 108"),
        ("synchronize", "sync", "stream 3772"),
    ]
    assert [process.pid for process in trace.processes] == [HOST]


def test_the_first_process_of_a_container_is_no_device(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 0, 9, pid=1, External_id=1),
        span("hipLaunchKernel", 1, 2, "cuda_runtime", pid=1, correlation=5),
        span("train", 0, 20, "user_annotation", pid=1),
        span("gemm", 4, 3, "kernel", pid=1, tid=0, correlation=5, device=1, stream=0),
        named("process_labels", "CPU", 1),
        named("process_labels", "GPU 1", 1),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "launch") == [
        ("train", "scope", -1),
        ("aten::mm", "op", -1),
        ("hipLaunchKernel", "runtime", -1),
        ("gemm", "kernel", 2),
    ]
    assert [process.pid for process in trace.processes] == [1]


def test_waits_of_a_stream_have_a_track_of_their_own_since_2026(tmp_path: Path) -> None:
    events = [
        span("gemm", 10, 50, "kernel", pid=0, tid=7, stream=7, device=0),
        span("Stream Sync", 20, 80, "cuda_sync", pid=0, tid=1_000_007, device=0),
        span("Event Sync", 20, 80, "cuda_sync", pid=0, tid=-1, device=0, stream=-1),
    ]

    trace = read(written(tmp_path, events))

    assert dict(facts(trace, "track")) == {
        "gemm": "stream 7",
        "Stream Sync": "stream 7, syncs",
        "Event Sync": "stream -1",
    }


def test_overhead_of_the_recorder_is_no_process(tmp_path: Path) -> None:
    events = [
        span("Activity Buffer Request", 1, 5, "overhead", pid=-1, tid=0),
        span("aten::mm", 10, 5),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "track") == [
        ("Activity Buffer Request", "runtime", "profiler"),
        ("aten::mm", "op", "thread 1"),
    ]
    assert [process.pid for process in trace.processes] == [HOST]


def test_begins_and_ends_are_paired_thread_by_thread(tmp_path: Path) -> None:
    def edge(ph: str, ts: float, name: str = "", tid: int = 1, **members: Any) -> dict[str, Any]:
        return {"ph": ph, "ts": ts, "pid": HOST, "tid": tid, "name": name, "cat": "cpu_op", **members}

    events = [
        edge("B", 1, "outer", args={"Sequence number": 5}),
        edge("B", 2, "other", tid=2),
        edge("B", 3, "inner"),
        edge("E", 4),
        edge("E", 6, tid=2),
        edge("E", 9),
        edge("E", 10),
        edge("B", 11, "open"),
        edge("B", 12, "instant"),
        edge("E", 12),
        edge("b", 2, "late", id=3),
        edge("e", 20, "late", id=3),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "start_ns", "duration_ns", "is_async") == [
        ("outer", 1_000, 8_000, False),
        ("late", 2_000, 18_000, True),
        ("other", 2_000, 4_000, False),
        ("inner", 3_000, 1_000, False),
        ("open", 11_000, 9_000, False),
        ("instant", 12_000, 0, False),
    ]
    assert trace.sequence_nr[0] == 5
    assert trace.notes == (
        "Ends of spans that never began, left out: 1.",
        "Spans without an end, which end with the file: 1.",
    )


def test_stacks_and_modules_come_from_python_calls(tmp_path: Path) -> None:
    def call(name: str, ts: float, dur: float, own: int, parent: int | None, **args: Any) -> dict[str, Any]:
        return span(name, ts, dur, "python_function", Python_id=own, Python_parent_id=parent, **args)

    events = [
        call("train.py(3): main", 0, 100, 1, None),
        call("nn.Module: Net_0", 10, 60, 2, 1, Python_module_id=0),
        call("torch/nn/modules/module.py(1500): _call_impl", 11, 58, 3, 2),
        call("nn.Module: Linear_0", 12, 20, 4, 3, Python_module_id=0),
        call("nn.Module: Linear_1", 40, 20, 5, 3, Python_module_id=1),
        call("<built-in function linear>", 13, 10, 6, 4),
        span("aten::linear", 14, 5),
        span("aten::linear", 42, 5),
        span("aten::add", 80, 5),
    ]

    trace = read(written(tmp_path, events))

    calls = {name: row for row, (name, kind) in enumerate(facts(trace, "kind")) if kind == "python"}
    ops = [row for row, (_, kind) in enumerate(facts(trace, "kind")) if kind == "op"]
    main, impl = Frame("train.py", 3, "main"), Frame("torch/nn/modules/module.py", 1500, "_call_impl")
    assert trace.stacks is not None
    assert [trace.stacks.stack(trace.stack[row]) for row in ops] == [[impl, main], [impl, main], [main]]
    assert trace.stack[calls["train.py(3): main"]] == -1
    assert trace.stacks.stack(trace.stack[calls["nn.Module: Linear_0"]]) == [impl, main]
    paths = [trace.modules[one] if one >= 0 else "" for one in trace.module[ops].tolist()]
    assert paths == ["Net.Linear_0", "Net.Linear_1", ""]
    assert trace.notes == ("Lines in stacks are those of `def`: the file has no others.",)


def test_of_equal_times_a_python_call_is_around_its_op(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 5, 7),
        span("cudaLaunchKernel", 5, 7, "cuda_runtime"),
        span("<built-in method mm>", 5, 7, "python_function", Python_id=2, Python_parent_id=1),
        span("train.py(3): train", 5, 7, "python_function", Python_id=1),
    ]

    trace = read(written(tmp_path, events))

    assert [name for (name,) in facts(trace)] == [
        *("<built-in method mm>", "train.py(3): train", "aten::mm", "cudaLaunchKernel")
    ]


def test_stacks_in_one_text_are_read(tmp_path: Path) -> None:
    stack = "model.py(12): forward;train.py(3): main"
    trace = read(written(tmp_path, [span("aten::mm", 1, 5, Call_stack=stack), span("aten::add", 9, 5, Call_stack="")]))

    assert trace.stacks is not None
    assert trace.stacks.stack(trace.stack[0]) == [Frame("model.py", 12, "forward"), Frame("train.py", 3, "main")]
    assert trace.stack[1] == -1


def test_an_op_of_the_backward_pass_has_the_stack_of_its_forward_op(tmp_path: Path) -> None:
    events = [
        span("train.py(3): main", 0, 40, "python_function", Python_id=1, Python_parent_id=None),
        span("aten::mm", 10, 20, Sequence_number=7, Fwd_thread_id=0),
        span(f"{ENGINE}MmBackward0", 50, 20, tid=2, Sequence_number=7, Fwd_thread_id=1),
        span("MmBackward0", 52, 16, tid=2, Sequence_number=7, Fwd_thread_id=1),
    ]

    trace = read(written(tmp_path, events))

    assert trace.stack_is_forward is not None
    assert trace.stack_is_forward.tolist() == [False, False, True, True]
    assert trace.stack[3] == trace.stack[1] >= 0


def test_memory_events_belong_to_the_op_that_was_running(tmp_path: Path) -> None:
    def record(ts: float, nbytes: int, address: int, device: int = 0) -> dict[str, Any]:
        members = {"Bytes": nbytes, "Addr": address, "Device Type": device, "Device Id": -1 if not device else 1}
        more = {"Total Allocated": 10_000, "Total Reserved": 4_096 if device else 0}
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": HOST,
            "tid": 1,
            "ts": ts,
            "args": members | more,
        }

    events = [span("aten::empty", 1, 5), record(2, 64, 1), record(8, -64, 1), record(3, 256, 9, device=1)]

    trace = read(written(tmp_path, events))

    records = trace.allocations
    assert records is not None
    assert (records.time_ns.tolist(), records.nbytes.tolist()) == ([2_000, 3_000, 8_000], [64, 256, -64])
    assert records.event.tolist() == [0, 0, -1]
    assert [trace.devices[one] for one in records.device.tolist()] == ["CPU", "CUDA", "CPU"]
    assert (records.device_index.tolist(), records.total.tolist()) == ([0, 1, 0], [64, 256, 0])
    assert (trace.memory_before.tolist(), trace.memory_after.tolist()) == ([0], [64])


def test_memory_events_of_2021_have_no_category_no_address_and_no_total(tmp_path: Path) -> None:
    def record(ts: float, nbytes: int) -> dict[str, Any]:
        members = {"Device Type": 1, "Device Id": 0, "Bytes": nbytes}
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": HOST, "tid": 1, "ts": ts, "args": members}

    events = [span("aten::empty", 1, 5, "Operator"), record(2, 64), record(7, -300), record(8, 100), record(9, -40)]

    records = read(written(tmp_path, events)).allocations

    assert records is not None
    assert (records.nbytes.tolist(), records.event.tolist()) == ([64, -300, 100, -40], [0, -1, -1, -1])
    # Of 300 released bytes, 236 were allocated before the recording.
    assert records.total.tolist() == [64, 0, 100, 60]


def test_values_of_inputs_are_read_as_pytorch_prints_them(tmp_path: Path) -> None:
    inputs = ["", "0", "1.5", "True", "[1, 2]", "inf", "cpu", "-3"]
    trace = read(written(tmp_path, [span("aten::mm", 1, 5, Concrete_Inputs=inputs, Input_Dims=[[2]] + [[]] * 7)]))

    assert json.loads(trace.value_texts[0]) == [[None, 0, 1.5, True, [1, 2], float("inf"), "cpu", -3], []]


def test_members_that_no_list_knows_are_keywords_of_ops_and_metadata_of_kernels(tmp_path: Path) -> None:
    events = [
        span("triton_fused_add", 1, 5, kernel_backend="triton", stream=0),
        span("triton_fused_add", 3, 9, "kernel", pid=0, tid=7, stream=7, device=0, brand_new=[1, 2]),
    ]
    events[0]["args"] = {"kernel_backend": "triton", "stream": 0}

    trace = read(written(tmp_path, events))

    assert json.loads(trace.value_texts[trace.values[0]]) == [[], [["kernel_backend", "triton"], ["stream", 0]]]
    assert json.loads(trace.extras[trace.extra[1]]) == {"brand new": "[1, 2]"}


def test_collectives_know_their_name_group_and_bytes(tmp_path: Path) -> None:
    told = {"Collective name": "allreduce", "Process Group Name": "3", "Group size": 8, "dtype": "Float"}
    sizes = {"In msg nelems": 100, "Out msg nelems": 100}
    events = [
        span("record_param_comms", 1, 50, **told, **sizes),
        span("nccl:all_to_all", 3, 20, "user_annotation"),
        span("cudaLaunchKernel", 5, 3, "cuda_runtime", correlation=4),
        span("ncclDevKernel_AllReduce", 10, 90, "kernel", pid=0, tid=7, stream=7, device=0, **told, **sizes),
        span("ncclKernel_SendRecv", 120, 9, "kernel", pid=0, tid=7, stream=7, device=0, correlation=4),
    ]

    trace = read(written(tmp_path, events))

    of = [None if one < 0 else tuple(trace.collectives[one]) for one in trace.collective.tolist()]
    full = ("allreduce", "3", 8, "Float", 100, 100)
    assert of == [full, None, None, full, ("all_to_all", "", -1, "", -1, -1)]
    assert trace.moved_bytes.tolist() == [400, -1, -1, 400, -1]
    assert kinds(trace)["ncclKernel_SendRecv"] == "collective"


def test_of_crossing_scopes_that_of_a_collective_is_asynchronous(tmp_path: Path) -> None:
    events = [
        span("## exchange ##", 0, 20, "user_annotation"),
        span("nccl:all_to_all", 10, 90, "user_annotation"),
        span("one", 200, 20, "user_annotation"),
        span("other", 210, 90, "user_annotation"),
    ]

    assert facts(read(written(tmp_path, events)), "is_async") == [
        ("## exchange ##", False),
        ("nccl:all_to_all", True),
        ("one", True),
        ("other", True),
    ]


def test_forward_ops_are_found_by_sequence_number_where_there_are_no_flows(tmp_path: Path) -> None:
    events = [
        span("aten::mul", 1, 5, tid=9, Sequence_number=6, Fwd_thread_id=0),
        span("aten::mm", 10, 5, tid=9, Sequence_number=7, Fwd_thread_id=0),
        span("aten::add", 10, 5, tid=5, Sequence_number=2, Fwd_thread_id=0),
        span(f"{ENGINE}MmBackward0", 50, 20, tid=2, Sequence_number=7, Fwd_thread_id=3),
        span("MmBackward0", 52, 16, tid=2, Sequence_number=7, Fwd_thread_id=3),
        span("aten::mm", 55, 6, tid=2),
    ]

    trace = read(written(tmp_path, events))

    assert [(name, forward) for name, forward in facts(trace, "forward") if forward >= 0] == [
        (f"{ENGINE}MmBackward0", 1),
        ("MmBackward0", 1),
        ("aten::mm", 1),
    ]
    assert [track.number for track in trace.tracks] == [3, -1, -1]


def test_a_flow_to_an_event_that_is_not_there_is_told(tmp_path: Path) -> None:
    events = [span("aten::mm", 1, 5), flow("s", 1, 1, "fwdbwd"), flow("f", 1, 99, "fwdbwd")]

    assert read(written(tmp_path, events)).notes == ("Links to events that are not in the file, left out: 1.",)
