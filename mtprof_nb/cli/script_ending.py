"""How a script ended, and the exit status that Python would have given it."""

from __future__ import annotations

import ast
import atexit
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from mtprof_nb.cell.traceback import hide_hooks

_PACKAGE = Path(__file__).parent.parent
#: Modules that the package calls to parse a script, and to find a module.
_RUNNERS = (ast.__file__, importlib.util.__file__)


@dataclass(frozen=True)
class ScriptEnding:
    """The exit status, and a note about a script that failed, exited early or was interrupted."""

    status: int
    outcome: str | None = None


#: A shell's status of a process that SIGINT ended.
INTERRUPTED = ScriptEnding(128 + signal.SIGINT, "interrupted: recorded until then")


def run_to_end(body: Callable[[], None], stop: Callable[[], None]) -> ScriptEnding:
    """Run `body` and the threads that it leaves; then `stop`, and print the traceback of an exception."""
    try:
        try:
            body()
        except SystemExit:
            _wait_for_threads()
            raise
        _wait_for_threads()
    except SystemExit as end:
        stop()
        return _exited(end.code)
    except BaseException as error:
        stop()
        return failed(error)
    stop()
    return ScriptEnding(0)


def failed(error: BaseException) -> ScriptEnding:
    """Print the script's own traceback, as Python would, and return the ending."""
    hide_hooks(error)
    own = _own_part(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(own), own)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return ScriptEnding(1, f"the script failed with {type(error).__name__}: recorded until then")


def _exited(code: object) -> ScriptEnding:
    if code is None or code == 0:
        return ScriptEnding(0)
    if isinstance(code, int):
        return ScriptEnding(code, f"the script exited with status {code}")
    with suppress(OSError, ValueError):
        print(code, file=sys.stderr)  # noqa: T201
    return ScriptEnding(1, "the script exited with status 1")


def _own_part(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames at its beginning that parse, import or run the script."""
    while traceback is not None and _is_runner(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


def _is_runner(file: str) -> bool:
    return _PACKAGE in Path(file).parents or file in _RUNNERS or file.startswith("<frozen importlib")


def _wait_for_threads() -> None:
    """Wait for the threads that Python waits for, except those of pools, which wait for work until Python ends."""
    pools = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", {})
    here = threading.current_thread()
    while left := [one for one in threading.enumerate() if not one.daemon and one is not here and one not in pools]:
        left[0].join()


class ExitBySignal:
    """Ends the process by SIGINT where `is_due`, as Python does, so that a shell knows why it ended.

    It is made before the script runs: what the script registers with `atexit` runs first.
    """

    def __init__(self) -> None:
        self.is_due = False
        atexit.register(self._exit)

    def _exit(self) -> None:
        if not self.is_due or os.name == "nt":
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
