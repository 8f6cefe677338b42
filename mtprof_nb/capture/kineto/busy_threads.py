"""Other threads that run ops while Kineto starts and stops, and the choice of the threads that it records.

Kineto writes the end of an op into the record of its start. Where the recording has ended, that memory is free.
"""

from __future__ import annotations

import sysconfig
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto.torch_profiler import asks_for_all_threads
from mtprof_nb.capture.samples.python_stacks import is_hidden_file, is_standard_library
from mtprof_nb.capture.samples.thread_names import frames_of_others
from mtprof_nb.errors import warn

_POOL = str(Path(sysconfig.get_path("stdlib"), "concurrent", "futures", "thread.py"))
_TASKS = Path("/proc/self/task")
#: After so much time on a processor, a thread has left the few instructions that end an op.
_ENOUGH_NS = 200_000
#: A thread that ran no longer than this has at most woken up.
_A_LITTLE_NS = 20_000
#: How many threads a message names.
_MOST_NAMES = 3
#: How long to wait for ops of other threads: at most, and where the system does not tell how long a thread has run.
_MOST_S, _BLINDLY_S, _PAUSE_S = 0.5, 0.05, 0.002
#: Parts of the paths of packages whose threads are not the user's: a notebook's kernel, a debugger, this package.
_HOSTS = ("/ipykernel/", "/IPython/", "/jupyter_client/", "/zmq/", "/tornado/", "/debugpy/", "/execnet/", "/mtprof_nb/")
#: The identity of a thread's innermost frame, and the instruction in it.
_Position = tuple[int, int]


def others_are_busy() -> bool:
    """Whether another thread runs code of the user's, a library's or a runtime's now."""
    return not all(_waits(frame.f_code.co_filename) for frame in frames_of_others().values())


def _other_threads() -> list[tuple[threading.Thread, FrameType]]:
    """The other threads that Python knows, and their innermost frames."""
    known = {thread.ident: thread for thread in threading.enumerate()}
    return [(known[ident], frame) for ident, frame in frames_of_others().items() if ident in known]


def _waits(file: str) -> bool:
    """Whether a thread whose innermost frame is in `file` is taken to wait: for a lock, a queue, a socket."""
    return is_hidden_file(file) or is_standard_library(file) or "/zmq/" in file or "/execnet/" in file


def let_ops_end() -> None:
    """Wait until each runnable thread has run a little. By now Kineto records no new ops."""
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
    """Nanoseconds on a processor of each other thread, by native id; empty where the system does not tell."""
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
    """Threads that were inside an op, or a scope of torch's, when Kineto last stopped recording all threads.

    The end of such an op does no harm until Kineto records all threads again.
    """

    def __init__(self) -> None:
        self._threads: dict[int, _Position | None] = {}

    def note(self, unfinished: Iterable[Unfinished], positions: dict[int, _Position]) -> None:
        """Remember the threads of `unfinished`, and where they were."""
        for one in unfinished:
            if one.native_id != threading.get_native_id():
                # A thread that has moved on has left an op, but perhaps not a scope: that ends with the thread.
                is_known = self._threads.get(one.native_id, ()) is None
                place = None if one.is_scope or is_known else positions.get(one.native_id)
                self._threads[one.native_id] = place

    def has_ended(self) -> bool:
        """Whether all of them have left their ops and scopes; waits a little."""
        deadline = time.monotonic() + _MOST_S
        while not self._forget_ended() and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return not self._threads

    def _forget_ended(self) -> bool:
        """Forget the threads that have gone on; True where waiting for the others is of no use."""
        now = positions() if self._threads else {}
        for native_id, place in list(self._threads.items()):
            is_gone = native_id not in now
            if is_gone or (place is not None and now[native_id] != place):
                del self._threads[native_id]
        return not any(place is not None for place in self._threads.values())


def positions() -> dict[int, _Position]:
    """The position of each other Python thread, by native id."""
    return {thread.native_id or 0: (id(frame), frame.f_lasti) for thread, frame in _other_threads()}


#: One for the process, as Kineto is.
LEFT_OPEN = LeftOpen()


class ThreadsBefore:
    """The user's threads that began before a recording, and which of them ran during it.

    Idle workers of a `concurrent.futures` pool are left out: work that a pool gets during a recording is followed.
    """

    def __init__(self) -> None:
        #: Name and time on a processor by native id, as the recording began.
        self._began: dict[int, tuple[str, int]] = {}

    def note(self) -> None:
        """Note the threads of the user that are there now."""
        run_ns = _run_ns()
        self._began = {
            native_id: (name, run_ns[native_id]) for native_id, name in _threads_of_the_user() if native_id in run_ns
        }

    @property
    def native_ids(self) -> frozenset[int]:
        """The threads that were noted as present."""
        return frozenset(self._began)

    def that_ran(self) -> str:
        """A sentence that names the threads that have run since `note`; empty where none has."""
        now = _run_ns()
        # A thread that has ended since has run.
        ran = [name for one, (name, ns) in self._began.items() if now.get(one, ns + _ENOUGH_NS) - ns > _A_LITTLE_NS]
        more = f" and {len(ran) - _MOST_NAMES} more" if len(ran) > _MOST_NAMES else ""
        names = f"thread{'s' * (len(ran) > 1)} {', '.join(map(repr, ran[:_MOST_NAMES]))}{more}"
        return (
            f"{names} began before the recording and ran during it: any ops that ran there are missing" if ran else ""
        )


def _threads_of_the_user() -> list[tuple[int, str]]:
    """Native ids and names of other threads, without idle ones and those of hosts, such as a notebook's kernel."""
    others = (thread for thread, frame in _other_threads() if not (_is_of_a_host(frame) or _is_idle(frame)))
    return [(thread.native_id or 0, thread.name) for thread in others]


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


class RecordedThreads:
    """Chooses, for each part of a recording, whether Kineto records all threads or only the one that starts it.

    Kineto cannot record all threads
    - with `profile_memory`: it would lose the allocator's records;
    - with stacks or modules while other threads run: its Python tracer fails at them;
    - while a thread is still in an op that began in an earlier recording of all threads. So a part that records all
      threads is followed by a part that records one.
    """

    def __init__(self, request: Request) -> None:
        self._config = request.experimental_config
        self._with_memory = request.recorded.profile_memory
        #: Whether the present part records all threads.
        self.are_all = False
        #: Why threads that began before the recording are not recorded, and the remedy; "" where they are.
        self._obstacle = ""
        self._before = ThreadsBefore() if self._with_memory else None
        self._unfinished: list[Unfinished] = []
        self._positions: dict[int, _Position] = {}

    def choose(self, *, with_python: bool) -> None:
        """Choose for the part that is about to start. `with_python`: Kineto follows Python in it."""
        was_all = self.are_all
        if with_python and others_are_busy():
            self._obstacle = (
                "Kineto cannot follow Python while they run; start them inside, or profile without stacks and modules"
            )
        if self._is_possible and not was_all and not LEFT_OPEN.has_ended():
            self._obstacle = "another thread is still in an op or scope of the recording before; let it end first"
        if self._config is None:
            self.are_all = self._is_possible and not was_all
        else:
            self.are_all = asks_for_all_threads(self._config)

    @property
    def _is_possible(self) -> bool:
        return not (self._obstacle or self._with_memory)

    def note_start(self) -> None:
        """The part is about to start."""
        if self._before is not None:
            self._before.note()

    def note_positions(self) -> None:
        """The part is about to end."""
        self._positions = positions()

    def note_unfinished(self, unfinished: list[Unfinished]) -> None:
        """Take what of torch's had not ended when the part did."""
        self._unfinished = unfinished
        if self.are_all:
            LEFT_OPEN.note(unfinished, self._positions)

    def can_go_on(self) -> bool:
        """Whether another part may follow: what is unfinished must not end in one that records the same threads."""
        return not self._unfinished or self.are_all or self._is_possible

    def warn_of_missing(self) -> None:
        """Warn of threads that ran and were not recorded."""
        if self._obstacle:
            warn(f"threads that began before the recording are not recorded: {self._obstacle}")
        elif self._before is not None and (ran := self._before.that_ran()):
            warn(f"profile_memory: {ran}; start threads inside the recording, or profile without profile_memory")
