"""Prints to a stream whose reader, such as `head`, may have seen enough."""

from __future__ import annotations

import os
from typing import TextIO


def print_to(stream: TextIO, text: str) -> None:
    """Print `text`. A closed pipe is no error: what is printed afterwards goes nowhere."""
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        # At its exit, Python would try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
