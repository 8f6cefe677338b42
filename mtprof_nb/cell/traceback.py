"""The user's traceback without the functions that a hook put between the user's code and the runtime."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from mtprof_nb import capture

_CAPTURE = Path(capture.__file__).parent
#: Modules of that folder that a user's code calls by itself.
_PUBLIC = frozenset({"activities.py", "schedule.py", "session.py"})


def hide_hooks(error: BaseException | None) -> None:
    """Remove the frames of hooks from the tracebacks of `error` and of its causes."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        _hide(one.__traceback__)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _hide(traceback: TracebackType | None) -> None:
    while traceback is not None:
        while traceback.tb_next is not None and _is_hook(traceback.tb_next):
            traceback.tb_next = traceback.tb_next.tb_next
        traceback = traceback.tb_next


def _is_hook(traceback: TracebackType) -> bool:
    file = Path(traceback.tb_frame.f_code.co_filename)
    is_public = file.parent == _CAPTURE and file.name in _PUBLIC
    return _CAPTURE in file.parents and not is_public
