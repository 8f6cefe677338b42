"""Traces of XLA's profiler, as JAX exports them: work of devices is on devices, and counted once."""

import json
from pathlib import Path
from typing import Any

import mtprof_nb as mtp
from mtprof_nb.reading import read
from tests.reading.chrome_files import facts, named


def _span(name: str, ts: float, dur: float, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    members = {"args": args} if args else {}
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, **members}


def _written(folder: Path, events: list[dict[str, Any]]) -> Path:
    path = folder / "host.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}))
    return path


HOST = [named("process_name", "/host:CPU", 701), named("thread_name", "python", 701, 5)]


def test_streams_of_a_gpu_have_its_work_and_other_lanes_repeat_it(tmp_path: Path) -> None:
    events = [
        *HOST,
        named("process_name", "/device:GPU:1", 2),
        named("thread_name", "Stream #13(Compute)", 2, 13),
        named("thread_name", "Stream #14(MemcpyH2D)", 2, 14),
        named("thread_name", "XLA Ops", 2, 40),
        named("thread_name", "Steps", 2, 41),
        _span("$train.py:7 step", 1, 90, 701, 5),
        _span("PjitFunction(step)", 2, 50, 701, 5),
        _span("MemcpyH2D", 5, 4, 2, 14, memcpy_details="size:64"),
        _span("loop_add_fusion", 10, 20, 2, 13, hlo_op="fusion", hlo_module="jit_step", correlation_id="3"),
        _span("ncclDevKernel_AllReduce", 31, 5, 2, 13),
        _span("fusion", 10, 20, 2, 40),
        _span("1", 5, 31, 2, 41),
    ]

    trace = read(_written(tmp_path, events))

    assert facts(trace, "kind", "device", "device_index", "track") == [
        ("$train.py:7 step", "python", "CPU", 0, "python"),
        ("PjitFunction(step)", "scope", "CPU", 0, "python"),
        ("1", "device_scope", "CUDA", 1, "Steps"),
        ("MemcpyH2D", "copy", "CUDA", 1, "Stream #14(MemcpyH2D)"),
        ("loop_add_fusion", "kernel", "CUDA", 1, "Stream #13(Compute)"),
        ("fusion", "device_scope", "CUDA", 1, "XLA Ops"),
        ("ncclDevKernel_AllReduce", "collective", "CUDA", 1, "Stream #13(Compute)"),
    ]
    assert mtp.load(tmp_path / "host.trace.json").summary().device_ns == 29_000
    assert [process.pid for process in trace.processes] == [701]


def test_a_loop_on_a_tpu_is_counted_by_its_instructions(tmp_path: Path) -> None:
    events = [
        *HOST,
        named("process_name", "/device:TPU:0", 3),
        named("thread_name", "XLA Modules", 3, 2),
        named("thread_name", "XLA Ops", 3, 3),
        _span("jit_step(12)", 10, 60, 3, 2),
        _span("while.5", 10, 40, 3, 3),
        _span("dot.1", 10, 15, 3, 3),
        _span("dot.1", 30, 15, 3, 3),
        _span("copy.3", 50, 20, 3, 3),
    ]

    trace = read(_written(tmp_path, events))

    assert facts(trace, "kind", "device") == [
        ("jit_step(12)", "device_scope", "TPU"),
        ("while.5", "device_scope", "TPU"),
        ("dot.1", "kernel", "TPU"),
        ("dot.1", "kernel", "TPU"),
        ("copy.3", "kernel", "TPU"),
    ]
    assert mtp.load(tmp_path / "host.trace.json").summary().device_ns == 50_000


def test_instructions_that_follow_each_other_are_work_though_rounding_makes_them_overlap(tmp_path: Path) -> None:
    events = [
        *HOST,
        named("process_name", "/device:TPU:0", 3),
        named("thread_name", "XLA Ops", 3, 3),
        # Each ends at the picosecond at which the next one begins.
        _span("fusion.1", 10.0006, 1.0006, 3, 3),
        _span("fusion.2", 11.0012, 2.0006, 3, 3),
        _span("fusion.3", 13.0018, 0.0006, 3, 3),
        # A loop that seems to end before its last instruction.
        _span("while.5", 20.0004, 4.0004, 3, 3),
        _span("dot.1", 20.0006, 4.0002, 3, 3),
    ]

    trace = read(_written(tmp_path, events))

    assert facts(trace, "kind", "start_ns", "end_ns") == [
        ("fusion.1", "kernel", 10_001, 11_002),
        ("fusion.2", "kernel", 11_001, 13_002),
        ("fusion.3", "kernel", 13_002, 13_003),
        ("while.5", "device_scope", 20_000, 24_000),
        ("dot.1", "kernel", 20_001, 24_001),
    ]


def test_instructions_on_the_host_are_ops(tmp_path: Path) -> None:
    events = [
        *HOST,
        named("thread_name", "tf_XLAEigen/9", 701, 9),
        _span("TfrtCpuExecutable::Execute", 1, 50, 701, 5),
        _span("dot.3", 5, 40, 701, 9, hlo_op="dot.3", hlo_module="jit_f"),
    ]

    trace = read(_written(tmp_path, events))

    assert facts(trace, "kind", "track") == [
        ("TfrtCpuExecutable::Execute", "scope", "python"),
        ("dot.3", "op", "tf_XLAEigen/9"),
    ]


def test_three_steps_of_jax_on_the_cpu_are_read() -> None:
    """`jax_cpu.trace.json.gz` was recorded by JAX 0.10: a jitted `w - 0.1 * jax.grad(loss)(w, x)`, three times."""
    recording = mtp.load(Path(__file__).with_name("jax_cpu.trace.json.gz"))
    trace = recording.trace

    ops = [(one.name, one.start_ns, one.duration_ns) for one in recording.events() if one.kind == "op"]
    assert ops == [
        ("ynn_fusion", 28_863_531, 25_518),
        ("multiply_add_fusion", 28_890_130, 3_916),
        ("dot", 28_894_336, 52_739),
        ("multiply_subtract_fusion", 28_950_109, 2_404),
        ("ynn_fusion", 53_625_758, 36_525),
        ("multiply_add_fusion", 53_663_454, 3_756),
        ("dot", 53_667_641, 51_396),
        ("multiply_subtract_fusion", 53_721_701, 2_604),
        ("ynn_fusion", 102_011_761, 30_305),
        ("multiply_add_fusion", 102_043_228, 3_906),
        ("dot", 102_047_554, 47_301),
        ("multiply_subtract_fusion", 102_097_899, 2_624),
    ]
    # Each op has a scope `end: …` inside.
    assert recording.summary().in_ops_ns == sum(duration_ns for *_, duration_ns in ops) - 3_456 == 259_538
    assert [track.name for track in trace.tracks] == ["python", "tf_XLAPjRtCpuClient/2917804267831049812"]
    calls = [row for row in facts(trace, "kind", "duration_ns") if row[1] == "python"]
    assert len(calls) == 7
    assert calls[2] == ("$jaxprog.py:16 train", "python", 126_532_045)
    jitted = [one for one in recording.events() if one.name == "PjitFunction(step)"]
    assert [one.stack for one in jitted] == [["jaxprog.py:16:train"]] * 3
    averages = {row.key: row.count for row in recording.key_averages()}
    assert (averages["dot"], averages["train"], averages["PjitFunction(step)"]) == (3, 3, 3)
    assert not any(key.startswith("$") for key in averages)
