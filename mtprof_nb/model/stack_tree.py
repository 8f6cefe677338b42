"""Stacks that share their outer frames: a tree in which each node is a stack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtprof_nb.model.schema import Int32, Record


class Frame(NamedTuple):
    """One source position. ``str(frame)`` is the contract's ``file:line:function``."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.function}"


@dataclass(frozen=True, eq=False)
class StackTree(Record):
    """Interned stacks. A stack is a node; its frames are the node's, its parent's, … innermost first.

    A parent's number is always lower than its children's; the root's parent is -1.
    """

    frame: Int32
    parent: Int32
    frames: tuple[Frame, ...]

    def __len__(self) -> int:
        return len(self.frame)

    def stack(self, node: int) -> list[Frame]:
        """The frames of `node`, innermost first."""
        found = []
        while node >= 0:
            found.append(self.frames[self.frame[node]])
            node = int(self.parent[node])
        return found


class StackInterner:
    """Builds a `StackTree`: the same frames under the same parent are the same node."""

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._frame_of: list[int] = []
        self._parent_of: list[int] = []

    def child(self, parent: int, frame: Frame) -> int:
        """The node of `frame` called from node `parent` (-1: from nowhere)."""
        frame_id = self._frames.setdefault(frame, len(self._frames))
        key = (parent, frame_id)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self._frame_of)
            self._frame_of.append(frame_id)
            self._parent_of.append(parent)
        return node

    def stack(self, outermost_first: Iterable[Frame]) -> int:
        """The node of a whole stack, -1 for an empty one."""
        node = -1
        for frame in outermost_first:
            node = self.child(node, frame)
        return node

    def tree(self) -> StackTree:
        """A tree of the stacks interned so far."""
        return StackTree(np.array(self._frame_of, np.int32), np.array(self._parent_of, np.int32), tuple(self._frames))
