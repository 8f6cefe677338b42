"""Figures 10: hook `native`, our own recorder, beside torch.profiler."""

from __future__ import annotations

from benchmarks.figure import Figure, LeftOutError
from benchmarks.native import building, devices, large_cell, own_time, running, stopping, tables
from benchmarks.sampling import Scale


def figures(scale: Scale) -> list[Figure]:
    """The figures of every part; left out where the recorder is not built."""
    import torch  # noqa: F401  (the recorder is loaded into it)

    from mtprof_nb.capture.native.recorder_loading import why_not

    if reason := why_not():
        msg = f"no native recorder: {reason}"
        raise LeftOutError(msg)
    parts = (running, own_time, tables, stopping, devices, large_cell, building)
    return [figure for part in parts for figure in part.figures(scale)]
