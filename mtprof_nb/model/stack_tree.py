"""Stacks that share their outer frames: a tree in which each node is a stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, NamedTuple, TypeVar

import numpy as np

from mtprof_nb.model.schema import POINTS_TO_PARENT, Int32, PointsInto, Record

Item = TypeVar("Item")


class Frame(NamedTuple):
    """One source position. ``str(frame)`` is ``file:line:function``."""

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

    frame: Annotated[Int32, PointsInto("frames", always=True)]
    parent: Annotated[Int32, POINTS_TO_PARENT]
    frames: tuple[Frame, ...]

    def __len__(self) -> int:
        return len(self.frame)

    def stack(self, node: int) -> list[Frame]:
        """The frames of `node`, innermost first."""
        frames = []
        while node >= 0:
            frames.append(self.frames[self.frame[node]])
            node = int(self.parent[node])
        return frames


class ChainInterner(Generic[Item]):
    """Numbers chains of items: the same item under the same parent is the same node."""

    def __init__(self) -> None:
        self._items: dict[Item, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._item_of: list[int] = []
        self._parent_of: list[int] = []

    def child(self, parent: int, item: Item) -> int:
        """The node of `item` called from node `parent` (-1: from nowhere)."""
        item_id = self._items.setdefault(item, len(self._items))
        key = (parent, item_id)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self._item_of)
            self._item_of.append(item_id)
            self._parent_of.append(parent)
        return node

    def stack(self, outermost_first: Iterable[Item], base: int = -1) -> int:
        """The node of a whole chain on top of `base`; `base` itself for an empty one."""
        for item in outermost_first:
            base = self.child(base, item)
        return base


class StackInterner(ChainInterner[Frame]):
    """Builds a `StackTree`; from a tree, whose nodes keep their numbers, or from nothing."""

    def __init__(self, tree: StackTree | None = None) -> None:
        super().__init__()
        if tree is not None:
            self._items = {frame: number for number, frame in enumerate(tree.frames)}
            self._item_of, self._parent_of = tree.frame.tolist(), tree.parent.tolist()
            keys = zip(self._parent_of, self._item_of, strict=True)
            self._nodes = {key: number for number, key in enumerate(keys)}

    def add(self, tree: StackTree) -> Int32:
        """Intern the stacks of `tree`; for each node of it, the node here."""
        nodes: list[int] = []
        for frame, parent in zip(tree.frame.tolist(), tree.parent.tolist(), strict=True):
            nodes.append(self.child(nodes[parent] if parent >= 0 else -1, tree.frames[frame]))
        return np.array(nodes, np.int32)

    def tree(self) -> StackTree:
        """A tree of the stacks interned so far."""
        return StackTree(np.array(self._item_of, np.int32), np.array(self._parent_of, np.int32), tuple(self._items))


def has_above(parents: Sequence[int], items: Sequence[int]) -> list[bool]:
    """For each node of a tree whether a node above it has the same item: whether a line or function called itself."""
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for node, parent in enumerate(parents):
        below[parent].append(node)
    is_repeated, on_path, todo = [False] * len(parents), Counter[int](), below[-1]
    while todo:
        node = todo.pop()
        if node < 0:  # all nodes below are done
            on_path[items[~node]] -= 1
            continue
        is_repeated[node] = on_path[items[node]] > 0
        on_path[items[node]] += 1
        todo += [~node, *below[node]]
    return is_repeated
