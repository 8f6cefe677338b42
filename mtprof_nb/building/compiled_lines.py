"""Puts the user's frames in place of the compiler's, inside regions of `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mtprof_nb.model.intervals import distinct_numbers
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import (
    BACKWARD,
    Columns,
    CompiledCalls,
    Frame,
    Int32,
    Int64,
    StackInterner,
    StackTree,
    Trace,
)

#: Events that a function runs between its parts, in the line of a graph break.
_ENTERS_REGION = ("TorchDynamo Cache Lookup", "Torch-Compiled Region")


class Share(NamedTuple):
    """A part of a kernel: the user's frames, outermost first, a weight, and the ops in words."""

    frames: tuple[Frame, ...]
    weight: int
    ops: str


#: The parts of what a wrapper calls, the largest first, by the wrapper's file and line.
Explanations = Mapping[tuple[str, int], Sequence[Share]]


class BrokenFunctions(NamedTuple):
    """Functions with graph breaks: of a part, the name of the whole; and its first line."""

    #: "" for a function that is no part.
    whole: Callable[[str], str]
    first_line: Callable[[str, int], int]


def with_user_frames(trace: Trace, explained: Explanations, broken: BrokenFunctions) -> Trace:
    """`trace` with stacks that show the source of compiled code.

    An event of the backward pass gets the stack of the forward region with the lines inside it.
    """
    if trace.stack is None or trace.stacks is None:
        return trace
    rewriter = _Rewriter(trace.stacks, explained, broken)
    is_explained = rewriter.is_explained[trace.stack]
    if not is_explained.any() and not rewriter.has_broken:
        return trace
    enters = trace.where_name(lambda name: name.startswith(_ENTERS_REGION))
    stack = np.where(enters, rewriter.before_part[trace.stack], rewriter.plain[trace.stack])
    is_backward = trace.phase == BACKWARD
    rows = np.flatnonzero(is_explained)
    forward = np.where(trace.forward >= 0, trace.stack[trace.forward], -1)
    forward = np.where(is_backward, forward, -2)
    stack[rows] = _user_stacks(rewriter, trace.stack[rows], forward[rows])
    names = dict.fromkeys((*trace.names, *rewriter.ops()))
    made: Columns = {"stack": stack, "stacks": rewriter.tree(), "names": tuple(names)}
    made["compiled"] = rewriter.calls({name: number for number, name in enumerate(names)})
    of_forward = is_explained & is_backward & (trace.forward >= 0)
    if trace.stack_is_forward is not None or of_forward.any():
        known = False if trace.stack_is_forward is None else trace.stack_is_forward
        made["stack_is_forward"] = of_forward | known
    return replace(trace, **made, **_plain_records(trace, rewriter.plain))


def _user_stacks(rewriter: _Rewriter, stack: Int32, forward: Int32 | Int64) -> Int32:
    """New stacks of events. `forward` has the stack of the forward op.

    It is -1 where that is not known, and -2 outside the backward pass.
    """
    width = int(forward.max(initial=0)) + 3
    keys, position = distinct_numbers(stack.astype(np.int64) * width + forward + 2)
    pairs = [(key // width, key % width - 2) for key in keys.tolist()]
    return np.array([rewriter.user_stack(*pair) for pair in pairs], np.int32)[position]


def _plain_records(trace: Trace, plain: Int32) -> Columns:
    """Samples and allocations without the frames of parts of functions."""
    records = {name: getattr(trace, name) for name in ("samples", "allocations")}
    return {
        name: replace(record, stack=plain[record.stack])
        for name, record in records.items()
        if record is not None and record.stack is not None
    }


class _Rewriter:
    """New stacks beside the old ones of a tree, which keep their numbers."""

    def __init__(self, tree: StackTree, explained: Explanations, broken: BrokenFunctions) -> None:
        self._interner = StackInterner(tree)
        self._explained = explained
        self._broken = broken
        self._calls: dict[int, list[tuple[int, Share]]] = {}
        self._frames = [tree.frames[frame] for frame in tree.frame.tolist()]
        self._parents: list[int] = tree.parent.tolist()
        self.has_broken = any(broken.whole(frame.function) for frame in tree.frames)
        #: For each node, and last for none, whether its innermost frame is explained.
        known = [frame[:2] in explained for frame in self._frames]
        self.is_explained = np.array([*known, False], np.bool_)
        #: For each node, and last for none, the stack without parts of functions after breaks.
        self.plain = np.append(np.arange(len(tree), dtype=np.int32), np.int32(-1))
        #: For what runs between two parts of a function: the stack of the part that follows.
        self.before_part = self.plain
        if self.has_broken:
            self.plain, self.before_part = self._without_parts()

    def tree(self) -> StackTree:
        return self._interner.tree()

    def ops(self) -> list[str]:
        """The ops of all shares."""
        return [share.ops for shares in self._calls.values() for _, share in shares]

    def calls(self, names: Mapping[str, int]) -> CompiledCalls | None:
        """The new stacks with their shares; `names` has the positions of the ops' names."""
        rows = [
            (call, stack, share.weight, names[share.ops])
            for call, shares in sorted(self._calls.items())
            for stack, share in shares
        ]
        return CompiledCalls(*np.array(rows, np.int64).T) if rows else None

    def user_stack(self, node: int, forward: int) -> int:
        """The stack of the user's frames, and of the call, for a node that is explained."""
        shares = self._explained[self._frames[node][:2]]
        inside, root = node if forward < 0 else forward, shares[0].frames[0]
        base = -1 if forward == -1 else self._around_region(inside, root)
        stacks = [(self._interner.stack(share.frames, base), share) for share in shares]
        call = self._interner.child(stacks[0][0], self._frames[node])
        self._calls[call] = stacks
        return call

    def _around_region(self, node: int, root: Frame) -> int:
        """The stack that called the compiled function `root`, of which `node` is inside."""
        while node >= 0 and not self._is_region(node, root):
            node = self._parents[node]
        if node < 0:
            return -1
        frame = self._frames[node]
        if self._broken.whole(frame.function):
            node = self._caller_of_part(node)
            return int(self.plain[self._parents[node]]) if node >= 0 else -1
        is_root = (frame.file, frame.function) == (root.file, root.function)
        return int(self.plain[self._parents[node] if is_root else node])

    def _is_region(self, node: int, root: Frame) -> bool:
        frame = self._frames[node]
        is_root = (frame.file, frame.function) == (root.file, root.function)
        return is_root or is_user_file(frame.file)

    def _caller_of_part(self, node: int) -> int:
        """The node of the broken function, of a part of which `node` is; -1 if it is not there."""
        whole = self._broken.whole(self._frames[node].function)
        while node >= 0 and self._frames[node].function != whole:
            node = self._parents[node]
        return node

    def _without_parts(self) -> tuple[Int32, Int32]:
        plain, before_part = [-1] * (len(self._frames) + 1), dict[int, int]()
        for node, (frame, parent) in enumerate(zip(self._frames, self._parents, strict=True)):
            whole = self._broken.whole(frame.function)
            if not whole:
                plain[node] = self._interner.child(plain[parent], frame)
                continue
            caller = self._caller_of_part(node)
            base = plain[self._parents[caller]] if caller >= 0 else -1
            line = self._broken.first_line(frame.file, frame.line)
            plain[node] = self._interner.child(base, Frame(frame.file, line, whole))
            before_part[caller] = plain[node]
        before_part.pop(-1, None)
        following = [before_part.get(*entry) for entry in enumerate(plain)]
        return np.array(plain, np.int32), np.array(following, np.int32)
