"""Each of many objects once: by identity, without hashing or comparing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from mtprof_nb.model.trace import Int64

T = TypeVar("T")


def distinct(objects: Sequence[T]) -> tuple[Int64, list[T]]:
    """The distinct objects in order of first appearance, and for each of `objects` its position among them."""
    if not objects:
        return np.empty(0, np.int64), []
    identity = np.fromiter(map(id, objects), np.int64, len(objects))
    _, first, inverse = np.unique(identity, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(by_appearance))
    return rank[inverse], [objects[index] for index in first[by_appearance].tolist()]
