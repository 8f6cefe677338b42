"""Collapsed stacks, a line each: frames root first, then whole microseconds. For flamegraph.pl and speedscope."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from mtprof_nb.analysis.stacks.stack_metrics import stack_totals
from mtprof_nb.export.atomic import replacing
from mtprof_nb.export.cut_texts import CutStacks
from mtprof_nb.model.trace import Int64, StackTree, Trace

#: Frames end at `;`, the last one at a blank, a stack at the end of its line: none may be inside of a frame.
_SEPARATORS = str.maketrans(dict.fromkeys(" ;\t\n\r\x00\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "_"))


def write(trace: Trace, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
    """Write the stacks on which at least a microsecond of `metric` was spent. Stacks of over 100 frames are cut.

    `ValueError` for an unknown metric, or where the recording has no stacks, or no samples for the metric of Python.
    """
    tree, totals = stack_totals(trace, metric)
    with replacing(path) as file:
        for line in _lines(tree, totals):
            file.write(line.encode("utf-8"))


def collapsed_frame(frame: str) -> str:
    """`frame` as a single word of valid UTF-8, which a collapsed stack needs."""
    return frame.translate(_SEPARATORS).encode("utf-8", "backslashreplace").decode("utf-8")


def _lines(tree: StackTree, totals: Int64) -> Iterator[str]:
    cut = CutStacks(tree, collapsed_frame)
    for node in np.flatnonzero(totals >= 1000).tolist():
        yield f"{';'.join(reversed(cut.frames(node)))} {int(totals[node]) // 1000}\n"
