"""The user's lines that were running at each event: from stacks, from marks, or from both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import numpy as np

from mtprof_nb.model.intervals import distinct
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.stack_tree import ChainInterner
from mtprof_nb.model.trace import Frame, Int32, Int64, SourceLine, StackTree, Trace

#: Functions of the runtimes that call autograd's engine.
_CALL_ENGINE = ("_engine_run_backward", "_run_backward")


class Chains(ChainInterner[SourceLine]):
    """Interned chains of lines, innermost first: a chain is a node with a line and the node of its caller."""

    def __len__(self) -> int:
        return len(self._item_of)

    @property
    def lines(self) -> tuple[SourceLine, ...]:
        return tuple(self._items)

    def line(self, node: int) -> int:
        return self._item_of[node]

    def innermost_first(self, node: int) -> list[int]:
        return [self._item_of[one] for one in self._callers(node)]

    def _callers(self, node: int) -> Iterator[int]:
        """`node`, its caller, and so on."""
        while node >= 0:
            yield node
            node = self._parent_of[node]

    def outermost(self, node: int, count: int) -> int:
        """The chain of the `count` outermost lines of `node`, -1 for none."""
        nodes = [-1, *reversed(list(self._callers(node)))]
        return nodes[min(count, len(nodes) - 1)]

    def moved(self, node: int, old_base: int, new_base: int) -> int:
        """The chain `node`, with the part that it shares with `old_base` replaced by `new_base`."""
        common, lines = set(self._callers(old_base)), self.lines
        own = takewhile(lambda one: one not in common, self._callers(node))
        return self.stack([lines[self._item_of[one]] for one in own][::-1], new_base)


def chains_of_events(trace: Trace, chains: Chains) -> Int32:
    """For each event the chain of user lines that was running on its own thread, -1 where none is known.

    A stack that is taken from the forward op is not used.
    """
    stack = _own_stacks(trace)
    marked = trace.line_stack if trace.line_stack is not None else trace.line
    marks = np.full(len(trace), -1, np.int64) if marked is None else marked.astype(np.int64)
    pairs, position = _unique_pairs(stack, marks)
    reader = _Reader(trace)
    chain_of_pair = [reader.chain(chains, first, second) for first, second in pairs]
    return np.array(chain_of_pair, np.int32)[position] if chain_of_pair else np.empty(0, np.int32)


def callers_of_engine(trace: Trace, chains: Chains, own: Int32, rows: Int64) -> Int32:
    """For each event of `rows` the part of its `own` chain that called the engine around it, -1 without a stack.

    A stack that ends in the engine is that of the call itself, which runs in the engine around it, if in any.
    """
    reader = _Reader(trace)
    pairs, position = _unique_pairs(own[rows].astype(np.int64), _own_stacks(trace)[rows])
    caller_of_pair = [chains.outermost(chain, reader.lines_around_engine(stack)) for chain, stack in pairs]
    return np.array(caller_of_pair, np.int32)[position] if caller_of_pair else np.empty(0, np.int32)


def _own_stacks(trace: Trace) -> Int64:
    if trace.stack is None:
        return np.full(len(trace), -1, np.int64)
    stack = trace.stack.astype(np.int64)
    return stack if trace.stack_is_forward is None else np.where(trace.stack_is_forward, -1, stack)


def _unique_pairs(first: Int64, second: Int64) -> tuple[list[tuple[int, int]], Int64]:
    width = int(second.max(initial=-1)) + 2
    keys, position = distinct((first + 1) * width + (second + 1))
    return [(key // width - 1, key % width - 1) for key in keys.tolist()], position


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        marked = trace.line_stacks.frames if trace.line_stacks is not None else ()
        self._marked_files = {frame.file for frame in marked} | set(trace.sources)

    def chain(self, chains: Chains, stack: int, marks: int) -> int:
        users = [frame for frame in self._frames(stack) if self._is_users(frame)]
        frames = _joined(users, self._marked_frames(marks))
        return chains.stack(SourceLine(frame.file, frame.line) for frame in reversed(frames))

    def lines_around_engine(self, stack: int) -> int:
        """Number of the user's lines around the innermost call of the engine that runs Python code."""
        frames = self._frames(stack)
        calls = (index for index, frame in enumerate(frames) if index and self._calls_engine(frame))
        return sum(map(self._is_users, frames[next(calls, len(frames)) :]))

    def _calls_engine(self, frame: Frame) -> bool:
        return frame.function in _CALL_ENGINE and not self._is_users(frame)

    def _is_users(self, frame: Frame) -> bool:
        # Code of IPython's own magics, such as %time, has no text: its caller, the cell, has.
        return frame.file in self._marked_files or (is_user_file(frame.file) and not frame.file.startswith("<timed "))

    def _frames(self, node: int) -> list[Frame]:
        return self._trace.stacks.stack(node) if self._trace.stacks is not None else []

    def _marked_frames(self, node: int) -> list[Frame]:
        tree: StackTree | None = self._trace.line_stacks
        if node < 0:
            return []
        return tree.stack(node) if tree is not None else [Frame(*self._trace.lines[node], "")]


def _joined(stack: list[Frame], marks: list[Frame]) -> list[Frame]:
    """Merge a stack and marked lines into one chain, innermost first.

    The stack has every function; a mark in the same function has the more exact line. Marks inside the innermost frame
    of the stack are calls that the stack does not have.
    """
    if not stack or not marks:
        return stack or marks
    joined: list[Frame] = []
    left = list(marks)
    for frame in stack:
        position = next((index for index, mark in enumerate(left) if mark[::2] == frame[::2]), None)
        if position is None:
            joined.append(frame)
            continue
        joined += left[: position + 1] if not joined else [left[position]]
        del left[: position + 1]
    return joined
