"""The text of the user's files, read when a recording ends: a file may be edited afterwards."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import replace

from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Trace

#: Larger texts are left out: nobody wrote them by hand.
_MOST_CHARACTERS = 2_000_000


def with_sources(trace: Trace) -> Trace:
    """`trace` with the present text of each of the user's files that has a frame or a marked line in it."""
    files = sorted(file for file in set(_files(trace)) - trace.sources.keys() if is_user_file(file))
    texts = {file: text for file in files if (text := _text(file))}
    return replace(trace, sources={**trace.sources, **texts}) if texts else trace


def _files(trace: Trace) -> Iterator[str]:
    for tree in (trace.stacks, trace.line_stacks):
        if tree is not None:
            yield from (frame.file for frame in tree.frames)
    yield from (line.file for line in trace.lines)


def _text(file: str) -> str:
    """The text of a file or cell, "" where there is none."""
    try:
        linecache.checkcache(file)
        text = "".join(linecache.getlines(file)).rstrip("\n")
    except (OSError, ValueError):  # no name that a file could have
        return ""
    return text if len(text) <= _MOST_CHARACTERS else ""
