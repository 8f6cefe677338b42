"""Time in which Python prepared the program: imports, `torch.compile`, starting workers of a DataLoader."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.functions.thread_time import stack_time
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Bool, Frame, Int8, Trace

IMPORTING, COMPILING, STARTING_WORKERS = "imports", "compiling", "starting workers"
_KINDS = (IMPORTING, COMPILING, STARTING_WORKERS)
#: The number of stacks in which a loop over a DataLoader begins: with worker processes, it starts these.
_IN_LOADER = len(_KINDS)
#: The number of the outermost function: nobody imports the module that a program begins with, such as pytest's.
_BEGINNING = -1
_DYNAMO, _INDUCTOR = "torch/_dynamo/convert_frame.py", "torch/_inductor/compile_fx.py"
_LOADER, _PROCESS = "torch/utils/data/dataloader.py", "multiprocessing/process.py"


@once_a_trace
def preparation_ns(trace: Trace, with_ops: bool = True) -> dict[str, int]:
    """The time of each preparation on the thread that spent most of it there; empty without samples.

    `with_ops`: whether the time of ops counts that ran meanwhile.
    """
    time, tree = stack_time(trace), trace.stacks
    if time is None or tree is None or not len(tree):
        return {}
    kind = np.where(time.stack >= 0, _kinds(trace)[time.stack], -1)
    spent = time.python_ns + time.waiting_ns + (time.ops_ns if with_ops else 0)
    times = {
        name: max(int(spent[(kind == number) & (time.track == track)].sum()) for track in np.unique(time.track))
        for number, name in enumerate(_KINDS)
        if (kind == number).any()
    }
    return {name: ns for name, ns in times.items() if ns}


def is_import(trace: Trace) -> Bool:
    """Which stacks of the recording run during an import."""
    imports: Bool = _kinds(trace) == _KINDS.index(IMPORTING)
    return imports


@once_a_trace
def _kinds(trace: Trace) -> Int8:
    """For each stack the number of its preparation, -1 for none: the outermost one, as compiling imports modules."""
    tree = trace.stacks
    if tree is None:
        return np.empty(0, np.int8)
    of_frame = [_kind(frame) for frame in tree.frames]
    of_stack: list[int] = []
    for frame, parent in zip(tree.frame.tolist(), tree.parent.tolist(), strict=True):
        of_stack.append(_within(of_stack[parent], of_frame[frame]) if parent >= 0 else _BEGINNING)
    kinds = np.array(of_stack, np.int8)
    return np.where(kinds < len(_KINDS), kinds, np.int8(-1))


def _within(outer: int, own: int) -> int:
    """The number of a stack whose innermost function has the number `own`, called from one with the number `outer`."""
    is_other_process = own == _KINDS.index(STARTING_WORKERS) and outer != _IN_LOADER
    return outer if 0 <= outer < len(_KINDS) or own < 0 or is_other_process else own


def _kind(frame: Frame) -> int:
    """The preparation that a function is the way into, -1 for none."""
    file = frame.file.replace("\\", "/")
    if frame.function == "<module>":  # what modules of the user run is theirs, and so are texts of `exec`
        return -1 if is_user_file(frame.file) or file.startswith("<") else _KINDS.index(IMPORTING)
    # The backward pass is compiled when it first runs, outside of Dynamo.
    if file.endswith(_DYNAMO) or (file.endswith(_INDUCTOR) and "compile" in frame.function):
        return _KINDS.index(COMPILING)
    if file.endswith(_PROCESS) and frame.function == "start":
        return _KINDS.index(STARTING_WORKERS)
    return _IN_LOADER if file.endswith(_LOADER) and frame.function == "__iter__" else -1
