"""The package's errors and warnings. Each message states the problem, then the remedy.

Messages quote names of ops, files and threads, which may be any text: `legible` makes it safe for a terminal.
"""

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Characters that a terminal or a browser obeys, or that have no picture: control characters, ends of lines, marks that
#: turn the direction of writing, invisible tags, and halves of surrogate pairs.
_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\U000e0000-\U000e007f]"
)


#: A longer name, or a longer sentence, is cut in the middle where it is shown.
LONGEST, LONGEST_SENTENCE = 400, 2_000


def shortened(name: str, longest: int = LONGEST) -> str:
    """`name`, cut in the middle if it is longer."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"


def legible(name: str) -> str:
    """`name` with U+FFFD for each character that is an instruction, ends of lines included."""
    return _OBEYED.sub("\ufffd", name)


def shown(name: str, longest: int = LONGEST) -> str:
    """`name`, legible, and cut in the middle if it is very long."""
    return legible(shortened(name, longest))


def legible_lines(text: str) -> str:
    """A text of several lines, each of which is legible."""
    return "\n".join(map(legible, text.split("\n")))


class MtprofError(Exception):
    """Base of the package's own errors."""

    def __str__(self) -> str:
        return legible_lines(super().__str__())


class HookError(MtprofError, RuntimeError):
    """A runtime cannot be recorded: it is missing or too old, or the hook is unknown."""


class SessionError(MtprofError, RuntimeError):
    """A profiler is used outside its session, or while another one is active."""


class ExportError(MtprofError, OSError):
    """A file could not be written. A previous file of that name is unchanged."""


class LoadError(MtprofError, OSError):
    """A recording could not be loaded: there is no such file, or it is damaged or of a kind that cannot be read."""


class BuildError(MtprofError, RuntimeError):
    """The native recorder could not be built: a compiler or headers are missing, or the compiler failed."""


class MtprofWarning(UserWarning):
    """A recording is incomplete or an option has no effect."""


_PACKAGE = f"{Path(__file__).parent}{os.sep}"
#: Files that a warning is never attributed to: this package's, and contextlib, which calls into it.
_NOT_USER_FILES = (_PACKAGE, contextlib.__file__)
_collected: list[str] | None = None


@contextmanager
def collected_warnings(messages: list[str]) -> Iterator[None]:
    """Append the package's warnings to `messages` while the block runs, instead of issuing them."""
    global _collected
    outer = _collected
    try:
        _collected = messages
        yield
    finally:
        _collected = outer


def warn(message: str) -> None:
    """Issue a warning at the line of the user's code that called into this package."""
    message = legible_lines(message)
    if _collected is not None:
        _collected.append(message)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_USER_FILES):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MtprofWarning, stacklevel=level)


def check_metadata(key: object, value: object) -> None:
    """Raise `TypeError` unless both are strings."""
    if not isinstance(key, str) or not isinstance(value, str):
        msg = f"metadata must be JSON text under a string key, got {value!r} under {key!r}: convert it with json.dumps"
        raise TypeError(msg)
