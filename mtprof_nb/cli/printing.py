"""Prints to a stream whose reader, such as `head`, may have seen enough, and whose encoding may lack characters."""

from __future__ import annotations

import os
from typing import TextIO

from mtprof_nb.errors import legible_lines
from mtprof_nb.views.escaped_text import encodable


def print_to(stream: TextIO, text: str) -> None:
    """Print `text` without control characters; those that the stream cannot encode are escaped.

    A closed pipe is no error: what is printed afterwards goes nowhere. Nor is a closed stream.
    """
    if stream.closed:
        return
    try:
        print(encodable(legible_lines(text), stream), file=stream, flush=True)
    except BrokenPipeError:
        # At its exit, Python would try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
