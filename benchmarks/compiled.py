"""Figures 13: kernels of compiled code, their times beside inductor's own, what timing costs, lines."""

from __future__ import annotations

import shutil
import time
from statistics import median
from typing import Any

from benchmarks import child
from benchmarks.compiled_models import PROGRAMS, own_cache
from benchmarks.figure import Figure, LeftOutError, Spread, at_least, at_most
from benchmarks.sampling import Scale

GROUP = "13 compiled code"
#: How the names of the scopes begin that inductor opens inside its kernels.
_OF_INDUCTOR = "graph_"
#: Shorter kernels differ by what it takes to open two scopes.
_LEAST_NS = 20_000
_CALLS = 2_000


def figures(scale: Scale) -> list[Figure]:
    """Times, costs and lines, each in processes of their own."""
    if shutil.which("g++") is None:
        msg = "inductor needs g++"
        raise LeftOutError(msg)
    ratios = child.call("benchmarks.compiled:measure_times")
    costs = child.call("benchmarks.compiled:measure_cost", scale.least_rounds * 5)
    return [
        Figure(GROUP, "time of a fused kernel", "inductor's own", Spread.of(ratios), len(ratios), bound=at_most(1.1)),
        Figure(GROUP, "timing a kernel", "", Spread.of(costs), len(costs), "µs a call", at_most(0.5)),
        _lines(),
    ]


def _lines() -> Figure:
    """The part of fused kernels none of whose lines is missing in inductor's origins."""
    found = [child.call("benchmarks.compiled_models:lines_of_kernels", name) for name in PROGRAMS]
    whole = sum(counts["kernels"] for counts in found)
    right = sum(counts["same lines"] + counts["fewer lines"] for counts in found)
    known = whole - sum(counts["unknown"] for counts in found)
    share = Spread.of([right / max(known, 1)])
    behind = "; ".join(f"{name}: {counts}" for name, counts in zip(PROGRAMS, found, strict=True))
    title = f"lines of {known} of {whole} fused kernels"
    return Figure(GROUP, title, "inductor's origins", share, 1, "", at_least(0.9), behind)


def measure_times() -> list[float]:
    """For each fused kernel of a transformer, our time as a multiple of inductor's."""
    import torch

    import mtprof_nb as mtp

    torch.set_num_threads(1)
    with own_cache(), torch._inductor.config.patch({"cpp.enable_kernel_profile": True}):
        step = PROGRAMS["transformer"](torch)
        for _ in range(3):
            step()
        with mtp.profile(hook="native", with_stack=True) as prof:
            for _ in range(30):
                step()
    return _ratios(prof.trace)


def _ratios(trace: Any) -> list[float]:
    from mtprof_nb.analysis.nesting import nesting

    parents = nesting(trace).parent
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row, parent in enumerate(parents.tolist()):
        if parent >= 0 and trace.names[trace.name[row]].startswith(_OF_INDUCTOR):
            key = int(trace.name[row]), int(trace.stack[parent])
            durations = int(trace.duration_ns[parent]), int(trace.duration_ns[row])
            pairs.setdefault(key, []).append(durations)
    medians = [[median(column) for column in zip(*times, strict=True)] for times in pairs.values()]
    return [ours / theirs for ours, theirs in medians if theirs >= _LEAST_NS]


def measure_cost(rounds: int) -> list[float]:
    """Microseconds that a call takes longer while it is recorded with stacks."""
    import torch  # noqa: F401 - the recorder needs it

    import mtprof_nb as mtp
    from mtprof_nb.capture.native.recorder_loading import recorder

    module = recorder()
    if module is None:
        msg = "the native recorder is not built"
        raise LeftOutError(msg)
    kernel = module.timed(len, "cpp_fused_nothing_0")
    costs = []
    for _ in range(rounds):
        with mtp.profile(hook="native", with_stack=True):
            _run(kernel)
            costs.append((_run(kernel) - _run(len)) / _CALLS / 1e3)
    return costs


def _run(function: Any) -> int:
    calls = range(_CALLS)
    began = time.perf_counter_ns()
    for _ in calls:
        function(())
    return time.perf_counter_ns() - began
