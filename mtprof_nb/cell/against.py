"""Recordings that a magic names: a variable, `last`, or a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError

from mtprof_nb.comparing import Comparison, compare, runs_of
from mtprof_nb.errors import LoadError, SessionError
from mtprof_nb.profiler import last

_LAST = "last"


def compared(line: str, names: Mapping[str, Any]) -> Comparison:
    """The comparison of the two profiles, files or functions that `line` names; `UsageError` if it does not."""
    try:
        given = shlex.split(line)
    except ValueError as error:
        msg = f"{error} in {line!r} (%mtcompare before after)"
        raise UsageError(msg) from None
    if len(given) != 2:
        msg = f"%mtcompare needs two names, got {len(given)}: %mtcompare before after, each a variable, last, or a file"
        raise UsageError(msg)
    a, b = (named(name, names) for name in given)
    labels = (given[0], given[1]) if given[0] != given[1] else None
    try:
        return compare(a, b, names=labels)
    except (TypeError, ValueError, LoadError, SessionError) as error:
        raise UsageError(str(error)) from None


def recording_named(name: str, names: Mapping[str, Any]) -> Any:
    """The recording, or list of recordings, of this name; `UsageError` if there is none."""
    given = named(name, names)
    try:
        return runs_of(given)
    except (TypeError, ValueError, LoadError) as error:
        raise UsageError(str(error)) from None


def named(name: str, names: Mapping[str, Any]) -> Any:
    """The last profile for `last`, else the variable of this name, else the file; `UsageError` if there is none."""
    if name == _LAST:
        if (profile := last()) is None:
            msg = "there is no last profile: profile a cell first, or name a variable or a file"
            raise UsageError(msg)
        return profile
    if name in names:
        return names[name]
    path = os.path.expanduser(name)  # noqa: PTH111 - load takes text
    if os.path.exists(path):  # noqa: PTH110
        return path
    msg = f"{name!r} is neither a variable nor a file: store a profile with %%mtprofile -o {name}, or name a file"
    raise UsageError(msg)
