"""The package's errors and warnings. Each message states the problem, then the remedy."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MtprofError(Exception):
    """Base of the package's own errors."""


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
    """A recording is incomplete or an option has no effect; the message says which."""


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
