"""Python stacks and modules of a file: from its Python calls, or from the texts of stacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mtprof_nb.building.called_modules import CalledModule, paths_by_callers
from mtprof_nb.building.interning import first_with_number
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.intervals import runs_of_equal
from mtprof_nb.model.schema import Bool, Int32, Int64
from mtprof_nb.model.trace import Frame, StackInterner
from mtprof_nb.reading.text.event_records import parsed

#: Names of Python calls: Kineto's, and XLA's.
_CALL = re.compile(r"(.+)\((\d{1,9})\): (.+)", re.DOTALL)
_CALL_OF_XLA = re.compile(r"\$(.+):(\d{1,9}) (.+)", re.DOTALL)
_OWN_FRAME = re.compile(r"(.*):(\d{1,9}):([^:]*)", re.DOTALL)
_MODULE = re.compile(r"nn\.Module: (.+?)(_\d+)?")
#: Frames of the profiler, of a notebook's kernel, and of Python itself that call the user's code.
_HIDDEN = re.compile(
    r"(^|.*[/\\])(mtprof_nb[/\\]|torch[/\\]profiler[/\\]|torch[/\\]autograd[/\\]profiler\.py|torch_npu[/\\]profiler[/\\]"
    r"|IPython[/\\]|ipykernel[/\\]|jupyter_client[/\\]|traitlets[/\\]|tornado[/\\]|debugpy[/\\]|asyncio[/\\]"
    r"|concurrent[/\\]futures[/\\]|ipykernel_launcher\.py).*|(.*[/\\]python3\.\d+[/\\])?(threading|runpy)\.py"
    r"|<frozen .*"
)


def frame_of_call(name: str) -> Frame | None:
    """The frame of a Python call by its name `file(line): function`, or XLA's `$file:line function`.

    None for a builtin, a module and hidden code.
    """
    match = _CALL.fullmatch(name) or _CALL_OF_XLA.fullmatch(name)
    if match is None or _is_hidden(match[1]):
        return None
    return Frame(match[1], int(match[2]), match[3])


@lru_cache(maxsize=4096)
def _is_hidden(file: str) -> bool:
    return _HIDDEN.fullmatch(file) is not None


def frames_of_text(text: str) -> list[Frame]:
    """The frames of a stack in one text, innermost first, as Kineto, Ascend and this package write them."""
    frames = (_frame(part.strip()) for part in text.split(";"))
    return [frame for frame in frames if frame is not None]


def _frame(text: str) -> Frame | None:
    if _CALL.fullmatch(text):
        return frame_of_call(text)
    match = _OWN_FRAME.fullmatch(text)
    return Frame(match[1], int(match[2]), match[3]) if match else None


@dataclass(frozen=True)
class PythonRows:
    """Python calls of a file as intervals of their threads, and the chain of calls that each one ends.

    Calls with the same name and the same chain of callers have the same chain.
    """

    is_python: Bool
    intervals: ThreadIntervals
    #: The chain of each row, -1 for a row that is no call.
    chain: Int32
    #: For each chain that of the caller, or -1, and the name of the call.
    chains: list[tuple[int, int]]

    @classmethod
    def of(cls, is_python: Bool, intervals: ThreadIntervals, own: Int64, caller: Int64, name: Int32) -> PythonRows:
        """The calls, by the numbers of the file where it has them, else by their times."""
        rows = np.flatnonzero(is_python)
        parent = first_with_number(own, rows, caller, is_python & (caller >= 0) & (own >= 0)).astype(np.int64)
        lacking = is_python & (own < 0)
        if lacking.any():
            parent = np.where(lacking, intervals.parents(is_python), parent)
        # A caller begins before its calls do; a file may be wrong.
        parent = np.where(parent < np.arange(len(parent)), parent, -1)
        return cls(is_python, intervals, *_chains(rows, parent, name))

    def running(self, rows: Int64) -> Int64:
        """The call that each of some rows began in, or -1."""
        return self.intervals.running(self.is_python, self.intervals.thread[rows], self.intervals.start[rows])

    def stacks(self, names: Sequence[str], interner: StackInterner) -> tuple[Int32, Int32]:
        """For each row that is a call, the stack of its caller, and its own with its frame on top; -1 for no stack."""
        frames = {number: frame_of_call(names[number]) for number in {number for _, number in self.chains}}
        outside, inside = [], [-1]
        for caller, number in self.chains:
            base, frame = inside[caller + 1], frames[number]
            outside.append(base)
            inside.append(base if frame is None else interner.child(base, frame))
        return self._of_rows(outside), self._of_rows(inside[1:])

    def modules(self, names: Sequence[str]) -> tuple[Int32, list[str]]:
        """For each row that is a call, the path of the module that it runs in, a position in the list; else -1."""
        classes = [match[1] if (match := _MODULE.fullmatch(text)) else None for text in names]
        called: dict[CalledModule, int] = {}
        within = [-1]
        for caller, number in self.chains:
            here, class_name = within[caller + 1], classes[number]
            if class_name is not None:
                here = called.setdefault(CalledModule(number, class_name, here), len(called))
            within.append(here)
        return self._of_rows(within[1:]), paths_by_callers(list(called), {})

    def _of_rows(self, of_chains: list[int]) -> Int32:
        return np.array([*of_chains, -1], np.int32).take(self.chain)


def _chains(rows: Int64, parent: Int64, name: Int32) -> tuple[Int32, list[tuple[int, int]]]:
    """The chain of each row, and the chains in order of their first row; rows of one depth are numbered together."""
    chain, first_of, above_of = np.full(len(parent) + 1, -1, np.int64), [rows[:0]], [rows[:0]]
    known, width = 0, int(name.max(initial=0)) + 1
    for run in runs_of_equal(_depths(parent)[rows]):
        here = rows[run]
        key = chain[parent[here]] * width + name[here]
        _, first, position = np.unique(key, return_index=True, return_inverse=True)
        chain[here] = position + known
        first_of.append(here[first])
        above_of.append(chain[parent[here[first]]])
        known += len(first)
    firsts, above = np.concatenate(first_of), np.concatenate(above_of)
    order = np.argsort(firsts)
    number = np.full(known + 1, -1, np.int64)
    number[order] = np.arange(known)
    chains = zip(number[above[order]].tolist(), name[firsts[order]].tolist(), strict=True)
    return number[chain[:-1]].astype(np.int32), list(chains)


def _depths(parent: Int64) -> Int64:
    """How many rows are above each one."""
    above = np.append(parent, -1)
    depth = (above >= 0).astype(np.int64)
    while (above >= 0).any():
        depth += depth[above]
        above = above[above]
    return depth


def text_stacks(texts: Iterable[Any], interner: StackInterner) -> list[int]:
    """A node for each stack: a text, or a list of frames as JSON; -1 for one without frames."""
    return [interner.stack(reversed(_frames(text))) for text in texts]


def _frames(stack: Any) -> list[Frame]:
    if isinstance(stack, str):
        return frames_of_text(stack)
    frames = parsed(stack) if isinstance(stack, bytes) else None
    parts = frames if isinstance(frames, list) else []
    return [frame for part in parts if isinstance(part, str) and (frame := _frame(part)) is not None]
