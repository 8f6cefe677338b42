"""Time in which Python prepared the program: imports, `torch.compile`, starting workers of a DataLoader."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Bool, Frame, Int8, Trace

IMPORTING, COMPILING, STARTING_WORKERS = "imports", "compiling", "starting workers"
_KINDS = (IMPORTING, COMPILING, STARTING_WORKERS)
_DYNAMO, _INDUCTOR = "torch/_dynamo/convert_frame.py", "torch/_inductor/compile_fx.py"
_LOADER = "torch/utils/data/dataloader.py"


@once_a_trace
def preparation_ns(trace: Trace) -> dict[str, int]:
    """The time of each preparation on the thread that spent most of it there; empty without samples."""
    time, tree = stack_time(trace), trace.stacks
    if time is None or tree is None or not len(tree):
        return {}
    kind = np.where(time.stack >= 0, _kinds(trace)[time.stack], -1)
    spent = time.ops_ns + time.python_ns + time.waiting_ns
    found = {
        name: max(int(spent[(kind == number) & (time.track == track)].sum()) for track in np.unique(time.track))
        for number, name in enumerate(_KINDS)
        if (kind == number).any()
    }
    return {name: ns for name, ns in found.items() if ns}


def is_import(trace: Trace) -> Bool:
    """Which stacks of the recording run during an import."""
    found: Bool = _kinds(trace) == _KINDS.index(IMPORTING)
    return found


@once_a_trace
def _kinds(trace: Trace) -> Int8:
    """For each stack the number of its preparation, -1 for none: the outermost one, as compiling imports modules."""
    tree = trace.stacks
    if tree is None:
        return np.empty(0, np.int8)
    of_frame = [_kind(frame) for frame in tree.frames]
    found: list[int] = []
    for frame, parent in zip(tree.frame.tolist(), tree.parent.tolist(), strict=True):
        outer = found[parent] if parent >= 0 else -1
        found.append(outer if outer >= 0 else of_frame[frame])
    return np.array(found, np.int8)


def _kind(frame: Frame) -> int:
    """The preparation that a function is the way into, -1 for none."""
    file = frame.file.replace("\\", "/")
    if frame.function == "<module>":  # what modules of the user run is theirs
        return -1 if is_user_file(frame.file) else _KINDS.index(IMPORTING)
    # The backward pass is compiled when it first runs, outside of Dynamo.
    if file.endswith(_DYNAMO) or (file.endswith(_INDUCTOR) and "compile" in frame.function):
        return _KINDS.index(COMPILING)
    if file.endswith(_LOADER) and frame.function == "__iter__":
        return _KINDS.index(STARTING_WORKERS)
    return -1
