"""Chrome traces of Kineto, dialect by dialect, from small files with exact numbers."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from chrome_files import HOST, facts, flow, named, span, written

from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.errors import LoadError
from mtprof_nb.reading import read

BASE = 1_751_410_836_000_000_000


def _on_gpu(
    name: str, ts: float, dur: float, cat: str = "kernel", stream: int = 7, device: int = 0, **args: Any
) -> dict[str, Any]:
    return span(name, ts, dur, cat, tid=stream, pid=device, device=device, stream=stream, **args)


def test_times_count_from_the_base_of_the_file_to_the_nanosecond(tmp_path: Path) -> None:
    path = written(tmp_path, [span("aten::mm", 4458676522690.655, 156.777)], baseTimeNanoseconds=BASE)

    trace = read(path)

    assert trace.start_ns.tolist() == [BASE + 4_458_676_522_690_655]
    assert trace.duration_ns.tolist() == [156_777]


@pytest.mark.parametrize("ts", ["1661203462598738", "1712867402348256.123", "1712867402348256.9999999"])
def test_absolute_times_keep_all_their_digits(tmp_path: Path, ts: str) -> None:
    path = tmp_path / "trace.json"
    event = f'{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{ts},"dur":2.5}}'
    path.write_text(f'{{"traceEvents":[{event},{event.replace(ts, json.dumps(ts))}]}}')
    expected = {"1661203462598738": 1_661_203_462_598_738_000, "1712867402348256.123": 1_712_867_402_348_256_123}

    trace = read(path)

    assert trace.start_ns.tolist() == [expected.get(ts, 1_712_867_402_348_257_000)] * 2


def test_a_kernel_knows_its_launch_its_op_and_its_stream(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 10, 50, External_id=5),
        span("cudaLaunchKernel", 20, 5, "cuda_runtime", External_id=5, cbid=211, correlation=8),
        _on_gpu("gemm", 40, 100, correlation=8, External_id=5, grid=[64, 1, 1]),
        _on_gpu("Memcpy DtoH", 150, 10, "gpu_memcpy", stream=20, device=3, correlation=9, bytes=64),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "kind", "device", "device_index", "track", "launch", "launcher") == [
        ("aten::mm", "op", "CPU", 0, "thread 1", -1, -1),
        ("cudaLaunchKernel", "runtime", "CPU", 0, "thread 1", -1, 0),
        ("gemm", "kernel", "CUDA", 0, "stream 7", 1, 0),
        ("Memcpy DtoH", "copy", "CUDA", 3, "stream 20", -1, -1),
    ]
    assert json.loads(trace.extras[trace.extra[2]]) == {"grid": "[64, 1, 1]"}
    assert trace.moved_bytes.tolist() == [-1, -1, -1, 64]


def test_a_call_with_its_own_number_for_that_of_the_op_belongs_to_the_op_around_it(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 10, 50, External_id=8),
        span("aten::inner", 15, 20, External_id=9),
        span("cudaLaunchKernel", 20, 5, "cuda_runtime", External_id=8, cbid=211, correlation=8),
        _on_gpu("gemm", 40, 100, correlation=8, External_id=8),
    ]

    trace = read(written(tmp_path, events))

    assert trace.launcher.tolist() == [-1, -1, 1, 1]


def test_without_numbers_of_launches_the_flows_link_kernels_to_calls_or_ops(tmp_path: Path) -> None:
    events = [
        span("aten::mm", 0, 20),
        span("cudaLaunchKernel", 2, 3, "cuda_runtime"),
        flow("s", 9, 2, "ac2g"),
        span("gemm", 30, 5, "kernel", pid=0, tid=7),
        flow("f", 9, 30, "ac2g", tid=7, pid=0),
        span("aten::add", 22, 4),
        flow("s", 10, 22, "cpu_to_cuda"),
        span("add_kernel", 40, 5, "kernel", pid=0, tid=7),
        flow("f", 10, 40, "cpu_to_cuda", tid=7, pid=0),
        span("lonely", 50, 5, "kernel", pid=0, tid=7),
        flow("f", 11, 50, "ac2g", tid=7, pid=0),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "launch", "launcher") == [
        ("aten::mm", -1, -1),
        ("cudaLaunchKernel", -1, 0),
        ("aten::add", -1, -1),
        ("gemm", 1, 0),
        ("add_kernel", -1, 2),
        ("lonely", -1, -1),
    ]


def test_forward_ops_are_those_of_the_flows(tmp_path: Path) -> None:
    engine = "autograd::engine::evaluate_function: MmBackward0"
    events = [
        span("aten::matmul", 10, 20, Sequence_number=7, Fwd_thread_id=0),
        span("aten::mm", 12, 10, Sequence_number=7, Fwd_thread_id=0),
        span(engine, 50, 20, tid=2, Sequence_number=7, Fwd_thread_id=1),
        span("MmBackward0", 52, 16, tid=2, Sequence_number=7, Fwd_thread_id=1),
        span("aten::mm", 54, 5, tid=2),
        span("Optimizer.step#SGD.step", 80, 10, "user_annotation"),
        span("aten::add_", 82, 5),
        flow("s", 1, 12, "fwdbwd"),
        flow("f", 1, 52, "fwdbwd", tid=2),
    ]

    trace = read(written(tmp_path, events))

    assert facts(trace, "phase", "forward") == [
        ("aten::matmul", "forward", -1),
        ("aten::mm", "forward", -1),
        (engine, "backward", 1),
        ("MmBackward0", "backward", 1),
        ("aten::mm", "backward", 1),
        ("Optimizer.step#SGD.step", "optimizer", -1),
        ("aten::add_", "optimizer", -1),
    ]


def test_metadata_names_and_rank_are_read(tmp_path: Path) -> None:
    info = {"backend": "nccl", "rank": 3, "world_size": 8}
    events = [
        span("aten::mm", 10, 50),
        named("process_name", "python3"),
        named("thread_name", "thread 1 (pt_autograd_0)", tid=1),
        span("PyTorch Profiler (0)", 5, 95, "Trace", pid="Spans", tid="PyTorch Profiler", Op_count=0),
    ]

    trace = read(written(tmp_path, events, distributedInfo=info, host_name="node7", trace_id="AB"))

    assert trace.processes[0][:3] == (HOST, 3, "node7")
    assert json.loads(trace.metadata["distributedInfo"]) == info
    assert [track.title for track in trace.tracks] == ["pt_autograd_0"]
    assert (trace.began_ns, trace.ended_ns, trace.trace_id) == (5_000, 100_000, "AB")


def test_a_file_may_be_compressed_whatever_its_name(tmp_path: Path) -> None:
    plain = written(tmp_path, [span("aten::mm", 10, 50)])
    packed = tmp_path / "trace.txt"
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    assert facts(read(packed), "start_ns") == facts(read(plain), "start_ns") == [("aten::mm", 10_000)]


def test_a_file_that_is_cut_says_where_and_gives_what_is_before(tmp_path: Path) -> None:
    whole = written(tmp_path, [span("aten::mm", 10, 50), span("aten::add", 70, 5)]).read_text()
    path = tmp_path / "cut.json"
    path.write_text(whole[: whole.index('"aten::add"')])

    with pytest.raises(LoadError, match=r"damaged at byte \d+ .* 1 event before it .* partial=True"):
        read(path)

    trace = read(path, partial=True)
    assert facts(trace) == [("aten::mm",)]
    assert trace.notes[0].startswith("The file is damaged in 1 place, first at byte ")


def test_kernels_of_compiled_code_have_the_lines_that_pytorch_2_15_writes(tmp_path: Path) -> None:
    stacks = [
        '  File "net.py", line 12, in forward\n    x = attend(x)\n  File "net.py", line 5, in attend\n    q @ k\n',
        '  File "net.py", line 13, in forward\n    return x + 1\n',
    ]
    events = [
        span("Torch-Compiled Region: 0/0", 10, 50, External_id=5),
        span("cuLaunchKernel", 20, 5, "cuda_driver", External_id=5, correlation=8),
        span("cuLaunchKernel", 26, 5, "cuda_driver", External_id=5, correlation=9),
        _on_gpu("triton_poi_fused_add_0", 40, 100, correlation=8, External_id=5, stack=stacks),
        _on_gpu("triton_poi_fused_mul_1", 150, 30, correlation=9, External_id=5, stack=stacks[1:]),
    ]

    costs = line_costs(read(written(tmp_path, events)))

    assert costs.device_ns is not None
    found = {line.line: int(ns) for line, ns in zip(costs.lines, costs.device_ns, strict=False)}
    assert found == {12: 0, 5: 50_000, 13: 80_000}
