"""Words in the source of a recording."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtprof_nb.model.trace import SourceLine, Trace

_COMMENT = re.compile(r"#[^\n]*")


def line_text(trace: Trace, line: SourceLine | None) -> str:
    """The recorded text of a line, "" where it is not known."""
    texts = trace.sources.get(line.file, "").splitlines() if line else []
    return texts[line.line - 1] if line and 0 < line.line <= len(texts) else ""


def line_has(trace: Trace, line: SourceLine | None, words: re.Pattern[str]) -> bool:
    """Whether the recorded text of a line has such words; a comment does not count."""
    return bool(words.search(_COMMENT.sub("", line_text(trace, line))))


def code_has(trace: Trace, files: Iterable[str], words: re.Pattern[str]) -> bool:
    """Whether the recorded code of one of these files has such words; comments do not count."""
    return any(words.search(_COMMENT.sub("", trace.sources.get(file, ""))) for file in files)
