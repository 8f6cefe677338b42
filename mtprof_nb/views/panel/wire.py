"""Messages between a panel and its page: plain values as compressed JSON, and plotly.js once a page."""

from __future__ import annotations

import json
import zlib
from functools import cache
from importlib.resources import files
from typing import Any


def packed(value: Any) -> bytes:
    """`value` as compressed JSON. Only ASCII, so that any text survives, halves of surrogate pairs included."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii"), 6)


@cache
def plotly_script() -> bytes:
    """plotly.js out of the installed plotly package, compressed."""
    return zlib.compress(files("plotly").joinpath("package_data", "plotly.min.js").read_bytes(), 6)
