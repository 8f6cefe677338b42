"""Kineto without its lines on the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LEVEL = "KINETO_LOG_LEVEL"


@contextmanager
def silent_kineto() -> Iterator[None]:
    """Keep Kineto from printing: it reads its log level once, when it is first prepared."""
    is_set = _LEVEL in os.environ
    os.environ.setdefault(_LEVEL, "6")
    try:
        yield
    finally:
        if not is_set:
            os.environ.pop(_LEVEL, None)
