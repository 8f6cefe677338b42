"""Other threads that run ops while Kineto starts and stops: it writes the end of an op where the op's record was."""

from __future__ import annotations

import sysconfig
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from mtprof_nb.capture.shared.garbage_collector import frames_of_others
from mtprof_nb.capture.shared.python_stacks import is_hidden_file, is_standard_library

_POOL = str(Path(sysconfig.get_path("stdlib"), "concurrent", "futures", "thread.py"))
_TASKS = Path("/proc/self/task")
#: A thread that has run so long has left the few instructions that end an op.
_ENOUGH_NS = 200_000
#: One that has run no longer has at most woken up.
_A_LITTLE_NS = 20_000
#: So many threads are named in a message.
_MOST_NAMES = 3
#: So long are ops of other threads waited for, at most; and where nobody tells how long a thread has run.
_MOST_S, _BLINDLY_S, _PAUSE_S = 0.5, 0.05, 0.002
_HOSTS = ("/ipykernel/", "/IPython/", "/jupyter_client/", "/zmq/", "/tornado/", "/debugpy/", "/execnet/", "/mtprof_nb/")
#: Where a thread is: its innermost frame, and the instruction in it.
_Position = tuple[int, int]


def busy_threads() -> list[str]:
    """Names of other threads that are running now, rather than waiting in the standard library or a host."""
    known = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = frames_of_others().items()
    return [known.get(ident, str(ident)) for ident, frame in frames if not _waits(frame.f_code.co_filename)]


def _waits(file: str) -> bool:
    """Whether a thread whose innermost frame is in `file` is taken to wait: for a lock, a queue, a socket."""
    return is_hidden_file(file) or is_standard_library(file) or "/zmq/" in file or "/execnet/" in file


def let_ops_end() -> None:
    """Wait until each thread that wants to run has run a little; new ops are not recorded by now."""
    began = _run_ns()
    if not began:
        time.sleep(_BLINDLY_S)
        return
    deadline = time.monotonic() + _MOST_S
    while time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        now = _run_ns()
        if not any(now[thread] - began.get(thread, 0) < _ENOUGH_NS and _wants_to_run(thread) for thread in now):
            return


def _run_ns() -> dict[int, int]:
    """How long each other thread has been on a processor, where the system tells."""
    found = {}
    for task in _TASKS.glob("[0-9]*"):
        with suppress(OSError):  # a thread may end meanwhile
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0])
    found.pop(threading.get_native_id(), None)
    return found


def _wants_to_run(thread: int) -> bool:
    try:
        return (_TASKS / str(thread) / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False


@dataclass(frozen=True)
class Unfinished:
    """An op or a scope that had not ended when its recording did."""

    native_id: int
    name: str
    is_scope: bool


class LeftOpen:
    """Threads that were inside an op, or a scope of torch's, when Kineto last stopped listening to all threads.

    Their end is harmless until it listens to all threads again.
    """

    def __init__(self) -> None:
        self._threads: dict[int, _Position | None] = {}

    def note(self, unfinished: Iterable[Unfinished], positions: dict[int, _Position]) -> None:
        """Remember the threads of `unfinished`, and where they were."""
        for one in unfinished:
            if one.native_id != threading.get_native_id():
                # A scope may last longer than where the thread is now; only the thread's own end is its end for sure.
                is_known = self._threads.get(one.native_id, ()) is None
                place = None if one.is_scope or is_known else positions.get(one.native_id)
                self._threads[one.native_id] = place

    def has_ended(self) -> bool:
        """Whether all of them have gone on; waits for them a little."""
        deadline = time.monotonic() + _MOST_S
        while not self._forget_those_that_went_on() and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return not self._threads

    def _forget_those_that_went_on(self) -> bool:
        now = positions() if self._threads else {}
        for native_id, place in list(self._threads.items()):
            is_gone = native_id not in now
            if is_gone or (place is not None and now[native_id] != place):
                del self._threads[native_id]
        return not any(place is not None for place in self._threads.values())


def positions() -> dict[int, _Position]:
    """Where each other thread of Python is, by native id."""
    native = {thread.ident: thread.native_id for thread in threading.enumerate()}
    frames = frames_of_others().items()
    return {native[ident] or 0: (id(frame), frame.f_lasti) for ident, frame in frames if ident in native}


#: Of the whole process, as Kineto is.
LEFT_OPEN = LeftOpen()


class ThreadsBefore:
    """Threads of the user's that began before a recording, and those of them that also ran during it.

    An idle worker of a `concurrent.futures` pool is none of them: what it is given meanwhile is followed.
    """

    def __init__(self) -> None:
        #: Name and time on a processor by native id, as the recording began.
        self._began: dict[int, tuple[str, int]] = {}

    def note(self) -> None:
        """Take those that there are now."""
        run_ns = _run_ns()
        self._began = {
            native_id: (name, run_ns[native_id]) for native_id, name in _threads_of_the_user() if native_id in run_ns
        }

    @property
    def native_ids(self) -> frozenset[int]:
        """The threads that were noted as present."""
        return frozenset(self._began)

    def that_ran(self) -> str:
        """A sentence that names the ones that have run since; empty where none has."""
        now = _run_ns()
        # One that has ended since has run to its end.
        ran = [name for one, (name, ns) in self._began.items() if now.get(one, ns + _ENOUGH_NS) - ns > _A_LITTLE_NS]
        more = f" and {len(ran) - _MOST_NAMES} more" if len(ran) > _MOST_NAMES else ""
        names = f"thread{'s' * (len(ran) > 1)} {', '.join(map(repr, ran[:_MOST_NAMES]))}{more}"
        return (
            f"{names} began before the recording and ran during it: any ops that ran there are missing" if ran else ""
        )


def _threads_of_the_user() -> list[tuple[int, str]]:
    """Native ids and names of other threads that neither run for a host, such as a notebook's kernel, nor idle."""
    known = {thread.ident: (thread.native_id or 0, thread.name) for thread in threading.enumerate()}
    frames = frames_of_others().items()
    return [known[ident] for ident, frame in frames if ident in known and not (_is_of_a_host(frame) or _is_idle(frame))]


def _is_idle(frame: FrameType) -> bool:
    """Whether a thread, by its innermost frame, waits for work that is handed to its pool."""
    return frame.f_code.co_filename == _POOL and frame.f_code.co_name == "_worker"


def _is_of_a_host(frame: FrameType) -> bool:
    above: FrameType | None = frame
    while above is not None:
        if any(host in above.f_code.co_filename for host in _HOSTS):
            return True
        above = above.f_back
    return False
