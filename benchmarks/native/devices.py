"""Hook `native` with devices beside torch.profiler, on a simulated device behind the real Kineto.

Each op launches one kernel. The device takes no time of its own to launch, and CUPTI's cost is not in any figure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import child, memory
from benchmarks.figure import Figure, LeftOutError, Spread, at_least, at_most
from benchmarks.native.running import GROUP
from benchmarks.sampling import Lap, Rounds, Sample, Scale, Way, in_turns

#: Of more kernels, torch.profiler takes minutes and more memory than most machines have.
_MOST_FOR_TORCH = 100_000
_MOST = 1_000_000
#: Least number of kernels at which a bound means something.
_LEAST = 10_000


def figures(scale: Scale) -> list[Figure]:
    """Time of the program, from its end to a table, and memory."""
    found: list[Figure] = []
    for size in (size for size in scale.native_sizes if size <= _MOST):
        ours: dict[str, Way] = {"native": partial(child.call, "benchmarks.native.devices:measure", "native", size)}
        theirs: dict[str, Way] = {"torch": partial(child.call, "benchmarks.native.devices:measure", "torch", size)}
        is_small = size <= _MOST_FOR_TORCH
        rounds = in_turns(ours | (theirs if is_small else {}), scale, 0)
        found += _figures(rounds, size, with_torch=is_small)
    return found


def _figures(rounds: Rounds, size: int, *, with_torch: bool) -> list[Figure]:
    title, is_large = f"devices, {size:,} kernels", size >= _LEAST
    stop = Spread.of(rounds.values("native", "stop"))
    unit, bound = "µs a launch and kernel", at_most(4) if is_large else None
    found = [Figure(GROUP, f"{title}: what devices add to stop", "", stop, len(rounds), unit=unit, bound=bound)]
    if memory.is_known():
        kept = Spread.of(rounds.values("native", "peak"))
        found.append(Figure(GROUP, f"{title}: peak of memory", "", kept, len(rounds), unit="B a kernel"))
    if with_torch:
        run = rounds.ratio("run", "native", "torch")
        found.append(Figure(GROUP, f"{title}: the program", "torch, no flags", run, len(rounds), bound=at_most(1.1)))
        table = rounds.ratio("table", "torch", "native")
        found.append(
            Figure(
                GROUP,
                f"{title}: times faster to a table",
                "torch, no flags",
                table,
                len(rounds),
                bound=at_least(30) if is_large else None,
            )
        )
    return found


def simulated() -> Any:
    """The simulated device of the tests; torch believes in it from now on."""
    sys.path.insert(0, str(child.ROOT / "tests"))
    try:
        import torch
        from simulated_device import Work, device

        from mtprof_nb.errors import BuildError
    finally:
        sys.path.pop(0)
    try:
        found = device()
    except BuildError as error:
        raise LeftOutError(str(error)) from error
    both = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
    torch.profiler.supported_activities = torch.autograd.profiler._supported_activities = lambda: both
    torch.cuda.is_available, torch.cuda.synchronize = lambda: True, lambda *_: None
    found.plan("aten::add_", Work("kernel", 1_000))
    found.settings(launch_ns=0)
    return found


def measure(way: str, size: int) -> Sample:
    """Times of one recording of `size` kernels, and the peak of the memory that it took, a kernel."""
    import torch

    gpu, ones = simulated(), torch.ones(2)

    def run(count: int) -> None:
        with gpu.on():
            for _ in range(count):
                ones.add_(1)

    make = _ours if way == "native" else _torchs
    make(lambda: run(10), "CPU", "CUDA")
    alone = make(lambda: run(size), "CPU") if way == "native" else {}
    before = memory.resident() if memory.is_known() else 0
    if memory.is_known():
        memory.forget_peak()
    found = make(lambda: run(size), "CPU", "CUDA")
    peak = memory.peak() - before if memory.is_known() else 0
    found["stop"] = (found["stop"] - alone.get("stop", 0)) / size * 1e6
    return found | {"peak": peak / size}


def _ours(run: Callable[[], None], *activities: str) -> Sample:
    import mtprof_nb as mtp

    flags = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"), True)
    # An op has four more inside: with a limit, the end of the largest run would be cut.
    profiler = mtp.profile(hook="native", activities=activities, max_events=10 * _MOST, **flags)
    return _timed(profiler, run)


def _torchs(run: Callable[[], None], *activities: str) -> Sample:
    from torch.profiler import ProfilerActivity, profile

    return _timed(profile(activities=[getattr(ProfilerActivity, name) for name in activities]), run)


def _timed(profiler: Any, run: Callable[[], None]) -> Sample:
    profiler.start()
    lap = Lap()
    run()
    lap("run")
    profiler.stop()
    lap("stop")
    profiler.key_averages().table(sort_by="self_cpu_time_total")
    lap("averages")
    return lap.times | {"table": lap.times["stop"] + lap.times["averages"]}
