"""Links from events on a device to the calls that launched them, and to the ops that made those calls."""

from __future__ import annotations

import numpy as np

from mtprof_nb.building.interning import first_with_number
from mtprof_nb.model.schema import Columns, Int32, Int64
from mtprof_nb.model.trace import OP, RUNTIME, SCOPE
from mtprof_nb.reading.assembly.chosen_spans import ChosenSpans

#: Numbers of calls are below this: a file may say otherwise.
_MOST = 2**40


def launches(file: ChosenSpans) -> Columns:
    """`launch` and `launcher` of each span."""
    kind, on_device = file.kind, file.on_device
    correlation = _numbers_of(file.spans["correlation"], file.process)
    external = _numbers_of(file.spans["external"], file.process)
    is_call = kind == RUNTIME
    launch = first_with_number(correlation, np.flatnonzero(is_call), correlation, on_device & (correlation > 0))
    # Older recordings repeat the number of the call in place of the op's.
    has_own = (external > 0) & (external != correlation) & (is_call | on_device)
    among = np.flatnonzero((kind == OP) | (kind == SCOPE))
    launcher = first_with_number(external, among, external, has_own)
    lacking = np.flatnonzero(is_call & (launcher < 0))
    launcher[lacking] = file.intervals.running(kind == OP, file.tracks.track[lacking], file.spans["start_ns"][lacking])
    of_launch = np.where(launch >= 0, launcher[launch], -1)
    launcher = np.where(on_device & (launcher < 0), of_launch, launcher)
    return {"launch": launch, "launcher": launcher}


def _numbers_of(numbers: Int64, process: Int32) -> Int64:
    """Numbers that differ between processes; -1 for those that cannot be right."""
    known = (numbers >= 0) & (numbers < _MOST)
    return np.where(known, numbers + process.astype(np.int64) * _MOST, -1)
