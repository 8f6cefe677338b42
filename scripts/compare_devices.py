"""Compares devices as hook `native` and as torch.profiler record them, on one short training run.

Run it once on a machine with a GPU, `python scripts/compare_devices.py`, and paste what it prints. Without one,
`--simulated` uses the simulated device of the tests.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mtprof_nb as mtp
from mtprof_nb.model.trace import KINDS, RUNTIME, Trace

ROOT = Path(__file__).parent.parent
_MOST_LINES = 12


class Run(NamedTuple):
    """A recording and the seconds that program and stop took."""

    trace: Trace
    run_s: float
    stop_s: float
    profile: Any


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--simulated", action="store_true")
    chosen = parser.parse_args()
    launching = simulated() if chosen.simulated else nullcontext
    train = training("cpu" if chosen.simulated else device_name(), launching)
    train(5)
    began = time.perf_counter()
    train(chosen.steps)
    alone_s = time.perf_counter() - began
    theirs, ours = by_torch(train, chosen.steps), by_native(train, chosen.steps)
    for line in (*about(chosen.simulated), *report(theirs, ours, alone_s)):
        print(line)


def device_name() -> str:
    """The device to train on; the program ends without one."""
    import torch

    for name in ("cuda", "xpu", "mtia"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available():
            return name
    sys.exit("PyTorch finds no device here: run this on a machine with a GPU, or with --simulated")


def simulated() -> Callable[[], AbstractContextManager[None]]:
    """A context in which ops launch on the simulated device, in which torch believes from now on."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    from simulated_device import Work

    from benchmarks.native.devices import simulated as believed_device

    gpu = believed_device()
    gpu.settings(launch_ns=2_000, raw_threads=True)
    for number, op in enumerate(("addmm", "mm", "relu", "threshold_backward", "sum", "add_", "mul_", "fill_")):
        gpu.plan(f"aten::{op}", Work(f"sim_{op}", 3_000 + 500 * number, 7 + number % 2))
    on: Callable[[], AbstractContextManager[None]] = gpu.on
    return on


def training(device: str, launching: Callable[[], AbstractContextManager[None]]) -> Callable[[int], None]:
    """A function that trains a small model for some steps."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    inputs = torch.randn(64, 256, device=device)

    def train(steps: int) -> None:
        with launching():
            for _ in range(steps):
                loss = model(inputs).sum()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            if device != "cpu":
                getattr(torch, device).synchronize()

    return train


def by_torch(train: Callable[[int], None], steps: int) -> Run:
    """The run as torch.profiler exports it."""
    from torch.profiler import ProfilerActivity, profile

    devices = [one for one in ("CUDA", "XPU", "MTIA") if one in names_of_supported()]
    chosen = [ProfilerActivity.CPU, *(getattr(ProfilerActivity, name) for name in devices)]
    profiler = profile(activities=chosen)
    run_s, stop_s = timed(profiler, train, steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torch.json"
        profiler.export_chrome_trace(str(path))
        return Run(mtp.load(path).trace, run_s, stop_s, profiler)


def names_of_supported() -> set[str]:
    """Torch's names of the activities that it can record here."""
    import torch

    return {activity.name for activity in torch.profiler.supported_activities()}


def by_native(train: Callable[[int], None], steps: int) -> Run:
    """The run as hook `native` records it."""
    flags = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"), True)
    profiler = mtp.profile(hook="native", **flags)
    run_s, stop_s = timed(profiler, train, steps)
    return Run(profiler.trace, run_s, stop_s, profiler)


def timed(profiler: Any, train: Callable[[int], None], steps: int) -> tuple[float, float]:
    """Seconds of the program, and of the end of its recording."""
    profiler.start()
    began = time.perf_counter()
    train(steps)
    ran = time.perf_counter()
    profiler.stop()
    return ran - began, time.perf_counter() - ran


def about(is_simulated: bool) -> list[str]:
    """Versions and the device."""
    import torch

    name = "simulated" if is_simulated else getattr(torch, device_name()).get_device_name()
    versions = f"PyTorch {torch.__version__}, Python {platform.python_version()}, mtprof_nb {mtp.__version__}"
    return [f"{versions}, {platform.system()} {platform.machine()}, device: {name}"]


def report(theirs: Run, ours: Run, alone_s: float) -> list[str]:
    """Sentences and tables."""
    lines = ["", f"{'':34}{'torch.profiler':>16}{'native':>16}"]
    for number, kind in enumerate(KINDS):
        counts = [int((run.trace.kind == number).sum()) for run in (theirs, ours)]
        if any(counts) and kind != "python":
            lines.append(f"{'# of ' + kind:34}{counts[0]:>16,}{counts[1]:>16,}{mark(counts)}")
    for title, count in (("without an op", no_op), ("without a launch", no_launch), ("before their launch", too_early)):
        counts = [count(run.trace) for run in (theirs, ours)]
        lines.append(f"{'device events ' + title:34}{counts[0]:>16,}{counts[1]:>16,}{mark(counts)}")
    links = [links_of(run.trace) for run in (theirs, ours)]
    differ = sum(((links[0] - links[1]) + (links[1] - links[0])).values())
    lines += ["", f"pairs of kernel and op that differ: {differ:,} of {sum(links[0].values()):,}"]
    lines += [
        f"  {key}: {links[0][key]} / {links[1][key]}" for key in links[0] | links[1] if links[0][key] != links[1][key]
    ]
    lines += [f"smallest distance of a launch's middle from the ends of its op: {margin(ours.trace) / 1e3:.3g} µs"]
    lines += ["", f"{'device time, ms':52}{'torch.profiler':>16}{'native':>16}"]
    times = [times_of(run.trace) for run in (theirs, ours)]
    for name, _ in times[0].most_common(_MOST_LINES):
        lines.append(f"{name[:50]:52}{times[0][name] / 1e6:>16.3f}{times[1][name] / 1e6:>16.3f}")
    lines += ["", "device time by line, native:"]
    rows = sorted(ours.profile.lines(), key=lambda row: -(row.device_ns or 0))[:_MOST_LINES]
    lines += [f"  {row.device_ns / 1e6:10.3f} ms  {row.source.strip()[:60]}" for row in rows if row.device_ns]
    lines += ["", f"the program alone: {alone_s:.3f} s"]
    for name, run in (("torch.profiler, no flags", theirs), ("native, all flags", ours)):
        lines.append(f"{name}: {run.run_s:.3f} s, then {run.stop_s:.3f} s for {len(run.trace):,} events")
    return [*lines, *(f"note: {note}" for note in ours.trace.notes)]


def mark(counts: list[int]) -> str:
    """A sign where both differ."""
    return "" if counts[0] == counts[1] else "  <--"


def launched(trace: Trace) -> Any:
    """The rows of kernels, copies, sets and collectives."""
    return np.flatnonzero(trace.is_device_work)


def no_op(trace: Trace) -> int:
    """Events on devices whose op is not known."""
    return int((trace.launcher[launched(trace)] < 0).sum()) if trace.launcher is not None else 0


def no_launch(trace: Trace) -> int:
    """Events on devices whose launch is not known."""
    return int((trace.launch[launched(trace)] < 0).sum()) if trace.launch is not None else 0


def too_early(trace: Trace) -> int:
    """Events on devices that begin before their launch does."""
    rows = launched(trace)
    if trace.launch is None:
        return 0
    rows = rows[trace.launch[rows] >= 0]
    return int((trace.start_ns[rows] < trace.start_ns[trace.launch[rows]]).sum())


def links_of(trace: Trace) -> Counter[tuple[str, str]]:
    """How often each kernel was launched by each op."""
    rows = launched(trace)
    owners = trace.launcher[rows] if trace.launcher is not None else np.full(len(rows), -1)
    names = (*trace.names, "")
    ops = np.where(owners >= 0, trace.name[owners], -1)
    return Counter((names[kernel], names[op]) for kernel, op in zip(trace.name[rows], ops, strict=True))


def times_of(trace: Trace) -> Counter[str]:
    """Nanoseconds of each kernel, by name."""
    found: Counter[str] = Counter()
    rows = launched(trace)
    for name, ns in zip(trace.name[rows].tolist(), trace.duration_ns[rows].tolist(), strict=True):
        found[trace.names[name]] += ns
    return found


def margin(trace: Trace) -> float:
    """Nanoseconds between the middle of a launch and the nearer end of its op, the least of all."""
    if trace.launcher is None:
        return 0.0
    calls = np.flatnonzero((trace.kind == RUNTIME) & (trace.launcher >= 0))
    op, middle = trace.launcher[calls], trace.start_ns[calls] + trace.duration_ns[calls] // 2
    return float(np.minimum(middle - trace.start_ns[op], trace.end_ns[op] - middle).min(initial=1 << 40))


if __name__ == "__main__":
    main()
