"""Every error that is this package's own. Each message states the problem, then the next step."""

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


class MtprofWarning(UserWarning):
    """A recording is incomplete or an option has no effect; the message says which."""


_PACKAGE = f"{Path(__file__).parent}{os.sep}"
#: Where a warning is never placed: here, and in what closes things on our behalf.
_NOT_THE_USERS = (_PACKAGE, contextlib.__file__)
_collected: list[str] | None = None


@contextmanager
def collected_warnings(messages: list[str]) -> Iterator[None]:
    """Let this package's warnings be added to `messages`, by a caller that shows them in a place of its own."""
    global _collected
    outer = _collected
    try:
        _collected = messages
        yield
    finally:
        _collected = outer


def warn(message: str) -> None:
    """Warn once a place of the user's, whatever depth of this package the problem is found in."""
    if _collected is not None:
        _collected.append(message)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MtprofWarning, stacklevel=level)


def check_metadata(key: object, value: object) -> None:
    """`TypeError` where one of them is no text."""
    if not isinstance(key, str) or not isinstance(value, str):
        msg = f"metadata is JSON text under a name, got {value!r} under {key!r}: write it with json.dumps"
        raise TypeError(msg)
