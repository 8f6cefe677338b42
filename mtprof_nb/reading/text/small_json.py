"""Small JSON texts inside a file: inputs, stacks, names."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any


def parsed(text: bytes) -> Any:
    """The value of a JSON text; None for a text that is none."""
    try:
        return _loads()(text) if text else None
    except (ValueError, RecursionError):
        return None


@cache
def _loads() -> Callable[[bytes], Any]:
    if find_spec("msgspec") is None:
        return json.loads
    import msgspec

    return msgspec.json.decode
