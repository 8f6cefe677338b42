"""The text of the user's files, read when a recording ends: a file may be edited afterwards."""

from __future__ import annotations

import itertools
import linecache

from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import Columns

#: Larger texts are left out: nobody wrote them by hand.
_MOST_CHARACTERS = 2_000_000


def source_texts(fields: Columns) -> dict[str, str]:
    """The sources of a trace, and the present text of each of the user's files with a frame or a marked line in it."""
    trees = [tree for tree in (fields["stacks"], fields["line_stacks"]) if tree is not None]
    places = itertools.chain(*(tree.frames for tree in trees), fields["lines"])
    files = {place.file for place in places} - fields["sources"].keys()
    texts = {file: text for file in sorted(files) if is_user_file(file) and (text := _text(file))}
    return {**fields["sources"], **texts}


def _text(file: str) -> str:
    """The text of a file or cell, "" where there is none."""
    try:
        linecache.checkcache(file)
        text = "".join(linecache.getlines(file)).rstrip("\n")
    except (OSError, ValueError):  # no name that a file could have
        return ""
    return text if len(text) <= _MOST_CHARACTERS else ""
