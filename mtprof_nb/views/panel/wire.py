"""Messages between a panel and its page: plain values as compressed JSON."""

from __future__ import annotations

import json
import zlib
from typing import Any


def packed(value: Any) -> bytes:
    """`value` as compressed JSON. Only ASCII, so that any text survives, halves of surrogate pairs included."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii"), 6)
