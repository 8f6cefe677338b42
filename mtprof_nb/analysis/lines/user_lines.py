"""The user's lines that were running at each event: from stacks, from marks, or from both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import numpy as np

from mtprof_nb.model.intervals import distinct_numbers
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.stack_tree import ChainInterner
from mtprof_nb.model.trace import Frame, Int32, Int64, SourceLine, Trace

#: Functions of the runtimes that call autograd's engine.
_CALL_ENGINE = ("_engine_run_backward", "_run_backward")


class Chains(ChainInterner[SourceLine]):
    """Interned chains of lines, innermost first: a chain is a node with a line and the node of its caller."""

    def __len__(self) -> int:
        return len(self._item_of)

    @property
    def lines(self) -> tuple[SourceLine, ...]:
        return tuple(self._items)

    @property
    def parents(self) -> Sequence[int]:
        """The caller of each node, which has a lower number; -1 for none."""
        return self._parent_of

    @property
    def line_of(self) -> Sequence[int]:
        """For each node its line."""
        return self._item_of

    def innermost_first(self, node: int) -> list[int]:
        return [self._item_of[one] for one in self._callers(node)]

    def _callers(self, node: int) -> Iterator[int]:
        """`node`, its caller, and so on."""
        while node >= 0:
            yield node
            node = self._parent_of[node]

    def with_callers(self, nodes: Iterable[int]) -> set[int]:
        """These nodes and all callers of them."""
        reached: set[int] = set()
        for node in nodes:
            reached.update(takewhile(lambda one: one not in reached, self._callers(node)))
        return reached

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


def chains_of_allocations(trace: Trace, chains: Chains) -> Int32:
    """For each allocator record with a stack of its own the chain of user lines there, -1 for all others."""
    records = trace.allocations
    if records is None or records.stack is None:
        return np.full(0 if records is None else len(records), -1, np.int32)
    nodes, position = distinct_numbers(records.stack.astype(np.int64) + 1)
    reader = _Reader(trace)
    chain_of_node = [reader.chain(chains, node, -1) if node >= 0 else -1 for node in (nodes - 1).tolist()]
    return np.array(chain_of_node, np.int32)[position] if chain_of_node else np.empty(0, np.int32)


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
    keys, position = distinct_numbers((first + 1) * width + (second + 1))
    return [(key // width - 1, key % width - 1) for key in keys.tolist()], position


class _Reader:
    """Finds the chain of user lines of a stack and marks. Callers are walked once, however many stacks share them."""

    def __init__(self, trace: Trace) -> None:
        tree, marks = trace.stacks, trace.line_stacks
        self._marked_files = {frame.file for frame in (() if marks is None else marks.frames)} | set(trace.sources)
        self._frames: Sequence[Frame] = () if tree is None else tree.frames
        self._frame: list[int] = [] if tree is None else tree.frame.tolist()
        self._caller: list[int] = [] if tree is None else tree.parent.tolist()
        self._users = list(map(self._is_users, self._frames))
        #: The frame of each mark, and the mark around it. A line that was marked alone has neither function nor caller.
        self._marks = (
            [Frame(*line, "") for line in trace.lines]
            if marks is None
            else [marks.frames[number] for number in marks.frame.tolist()]
        )
        self._around = [-1] * len(self._marks) if marks is None else marks.parent.tolist()
        self._chains: dict[tuple[int, ...], int] = {}
        self._mark_of: dict[tuple[int, str, str], int] = {}

    def chain(self, chains: Chains, stack: int, marks: int) -> int:
        """Merge a stack and marked lines into one chain.

        The stack has every function; a mark in the same function has the more exact line. Marks inside the innermost
        frame of the stack are calls that the stack does not have.
        """
        while stack >= 0 and not self._users[self._frame[stack]]:
            stack = self._caller[stack]
        if stack < 0:
            return self._of_marks(chains, marks, -1, -1)
        mark = self._mark(marks, stack)
        if mark < 0:
            return self._of_stack(chains, stack, marks)
        outer = self._of_stack(chains, self._caller[stack], self._around[mark])
        return self._of_marks(chains, marks, self._around[mark], outer)

    def _of_stack(self, chains: Chains, stack: int, marks: int) -> int:
        """The chain of a stack, with the lines of marks in its functions."""
        new: list[tuple[tuple[int, int], SourceLine | None]] = []
        while stack >= 0 and (stack, marks) not in self._chains:
            key, line = (stack, marks), None
            if self._users[self._frame[stack]]:
                mark = self._mark(marks, stack)
                line = SourceLine(*(self._frames[self._frame[stack]] if mark < 0 else self._marks[mark])[:2])
                marks = marks if mark < 0 else self._around[mark]
            new.append((key, line))
            stack = self._caller[stack]
        chain = self._chains.get((stack, marks), -1)
        for key, line in reversed(new):
            chain = self._chains[key] = chain if line is None else chains.child(chain, line)
        return chain

    def _of_marks(self, chains: Chains, marks: int, end: int, outer: int) -> int:
        """The chain of marks up to but without `end`, called from the chain `outer`."""
        new = []
        while marks != end and (marks, end, outer) not in self._chains:
            new.append(marks)
            marks = self._around[marks]
        chain = self._chains.get((marks, end, outer), outer)
        for mark in reversed(new):
            line = SourceLine(*self._marks[mark][:2])
            chain = self._chains[mark, end, outer] = chains.child(chain, line)
        return chain

    def _mark(self, marks: int, stack: int) -> int:
        """The innermost of `marks` in the function of the innermost frame of `stack`, -1 for none."""
        file, _, function = self._frames[self._frame[stack]]
        passed = []
        while marks >= 0 and (marks, file, function) not in self._mark_of:
            passed.append(marks)
            if self._marks[marks][::2] == (file, function):
                break
            marks = self._around[marks]
        innermost = self._mark_of.get((marks, file, function), marks)
        self._mark_of |= {(mark, file, function): innermost for mark in passed}
        return innermost

    def lines_around_engine(self, stack: int) -> int:
        """Number of the user's lines around the innermost call of the engine that runs Python code."""
        count, is_inside = 0, True
        while stack >= 0 and (stack := self._caller[stack]) >= 0:
            is_user = self._users[self._frame[stack]]
            is_inside &= is_user or self._frames[self._frame[stack]].function not in _CALL_ENGINE
            count += is_user and not is_inside
        return count

    def _is_users(self, frame: Frame) -> bool:
        # Code of IPython's own magics, such as %time, has no text: its caller, the cell, has.
        return frame.file in self._marked_files or (is_user_file(frame.file) and not frame.file.startswith("<timed "))
