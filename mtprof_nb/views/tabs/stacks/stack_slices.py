"""The slices of a call tree that are drawn: the largest, and the others folded together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.stacks.calltree import CallTree
from mtprof_nb.model.trace import Bool, Int64

#: A chart with more slices is slow and not readable.
MOST_SLICES = 400
#: Slices of folded frames are sent too, and drawn when they are opened: as many times more at most.
_MOST_WITH_FOLDED = 3
#: A slice under this share of the whole is folded into "other".
_SMALLEST_SHARE = 1 / 500


@dataclass(frozen=True, eq=False)
class Slices:
    """The nodes of a call tree that are drawn, the root first.

    `folded[i]` callees of slice `i`'s parent are in it, 0 for a node of the tree.
    """

    node: Int64
    parent: Int64
    folded: Int64
    total: Int64
    #: Frames above the root that called nothing else, outermost first.
    trunk: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.node)


def slices(tree: CallTree, total: Int64, most: int = MOST_SLICES, is_folded: Bool | None = None) -> Slices:
    """The largest nodes; the other callees of a node are one slice "other", so that totals are conserved.

    Nodes for which `is_folded` is true are not drawn at first, and do not count among the `most` nodes.
    """
    trunk = _trunk(tree, total)
    least = max(int(total[0] * _SMALLEST_SHARE), 1)
    # A callee's total is at most its caller's, so the largest nodes are connected.
    largest = np.lexsort((np.arange(len(tree)), -total))
    is_drawn = np.ones(len(tree), np.bool_) if is_folded is None else ~is_folded[largest]
    is_drawn[np.isin(largest, trunk[:-1])] = False
    largest = largest[np.cumsum(is_drawn) <= most][: _MOST_WITH_FOLDED * most + len(trunk)]
    kept = np.sort(largest[((total[largest] >= least) & ~np.isin(largest, trunk)) | (largest == trunk[-1])])
    position = np.full(len(tree) + 1, -1, np.int64)
    position[kept] = np.arange(len(kept))
    left_out = np.flatnonzero((total > 0) & (position[:-1] < 0))
    left_out = left_out[position[tree.parent[left_out]] >= 0]
    owners, number = np.unique(position[tree.parent[left_out]], return_inverse=True)
    rest = np.zeros(len(owners), np.int64)
    np.add.at(rest, number, total[left_out])
    return Slices(
        node=np.concatenate([kept, np.full(len(owners), -1)]),
        parent=np.concatenate([position[tree.parent[kept]], owners]),
        folded=np.concatenate([np.zeros(len(kept), np.int64), np.bincount(number, minlength=len(owners))]),
        total=np.concatenate([total[kept], rest]),
        trunk=tuple(trunk[1:]),
    )


def _trunk(tree: CallTree, total: Int64) -> list[int]:
    """The root, and the frames below it that called everything: they carry no information and take space."""
    trunk = [0]
    while True:
        callees = np.flatnonzero((tree.parent == trunk[-1]) & (total > 0))
        if len(callees) != 1 or tree.frame[callees[0]] < 0 or total[callees[0]] != total[0]:
            return trunk
        trunk.append(int(callees[0]))
