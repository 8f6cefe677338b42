"""Texts for files that repeat the name and the whole stack of each event: long ones are cut, with a mark."""

from __future__ import annotations

from collections.abc import Callable

from mtprof_nb.analysis.stacks.stack_metrics import depths
from mtprof_nb.model.trace import Frame, StackTree

#: Of a deeper stack, so many frames are written on either side of the cut. Without it, the file of a recursion would
#: grow with the square of its depth.
INNERMOST, OUTERMOST = 75, 25
#: The file of the frame that stands for those left out; its line is their number.
CUT = "<cut>"
#: A name is written whole if all events of that name have together at most so many characters for it.
_MOST_OF_A_NAME, _LEAST_OF_A_NAME = 64_000_000, 1_000


def cut_name(name: str, events: int) -> str:
    """`name`, or its beginning and its length if it is too long for so many events."""
    if len(name) * events <= _MOST_OF_A_NAME:
        return name
    most = max(_MOST_OF_A_NAME // events, _LEAST_OF_A_NAME)
    return name if len(name) <= most else f"{name[:most]}… ({len(name):,} characters)"


class CutStacks:
    """The frames of stacks as texts, innermost first."""

    def __init__(self, tree: StackTree, text: Callable[[str], str]) -> None:
        self._text = text
        self._frames = [text(str(frame)) for frame in tree.frames]
        self._frame, self._parent = tree.frame.tolist(), tree.parent.tolist()
        self._depth = (depths(tree.parent) + 1).tolist()
        #: For each node the innermost of the frames that are outermost on its stack.
        self._outer = list(range(len(tree)))
        for node, depth in enumerate(self._depth):
            if depth > OUTERMOST:
                self._outer[node] = self._outer[self._parent[node]]

    @property
    def longest(self) -> int:
        """The most characters of a stack, with two between frames."""
        deepest = min(max(self._depth, default=0), INNERMOST + OUTERMOST + 1)
        return deepest * (max(map(len, self._frames), default=0) + 2)

    def frames(self, node: int) -> list[str]:
        """The frames of a stack, with one frame in place of those that are left out."""
        if node < 0 or self._depth[node] <= INNERMOST + OUTERMOST:
            return self._walked(node, INNERMOST + OUTERMOST)
        cut = Frame(CUT, self._depth[node] - INNERMOST - OUTERMOST, "more frames")
        return [*self._walked(node, INNERMOST), self._text(str(cut)), *self._walked(self._outer[node], OUTERMOST)]

    def _walked(self, node: int, most: int) -> list[str]:
        frames: list[str] = []
        while node >= 0 and len(frames) < most:
            frames.append(self._frames[self._frame[node]])
            node = self._parent[node]
        return frames
