"""Attributes replaced for the time of a recording, and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


class Patches:
    """Attributes that were replaced, in order, and can be put back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute by `make(original)`; `AttributeError` where there is none."""
        original = getattr(owner, name)
        own = vars(owner).get(name, _MISSING)
        replacement = make(original)
        self._replaced.append((owner, name, own, replacement))
        setattr(owner, name, replacement)

    def undo(self) -> None:
        """Put back the originals, the last first. An attribute that other code has replaced since stays."""
        while self._replaced:
            # Forgotten last: where it fails, as at the limit of recursion, it can be undone later.
            owner, name, own, replacement = self._replaced[-1]
            if vars(owner).get(name, _MISSING) is replacement:
                if own is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)
            del self._replaced[-1]
