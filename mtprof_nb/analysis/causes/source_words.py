"""Words in the source of a recording."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtprof_nb.model.trace import Trace

_COMMENT = re.compile(r"#[^\n]*")


def code_has(trace: Trace, files: Iterable[str], words: re.Pattern[str]) -> bool:
    """Whether the recorded code of one of these files has such words; comments do not count."""
    return any(words.search(_COMMENT.sub("", trace.sources.get(file, ""))) for file in files)
