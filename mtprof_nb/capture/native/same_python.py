"""Starts Python a second time with this process's import path, so that it finds the same torch and the same package."""

from __future__ import annotations

import os
import sys


def command(statement: str) -> list[str]:
    """The command that runs `statement` in another Python process."""
    path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; {statement}"]
