"""The thread that ends a recording of Kineto's: when it asks the main thread, and when it waits for a better moment."""

import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mtprof_nb.capture.kineto import event_cap
from mtprof_nb.capture.kineto.event_cap import EventCap, Heap, Room, why_ended
from mtprof_nb.model.trace import Recorded

pytestmark = pytest.mark.skipif(event_cap.heap_reader() is None, reason="the C library does not tell its heap's size")


class NoRoom(Room):
    """Memory is short from the first look on."""

    def is_short(self, held: int, free: int) -> bool:
        return True


@pytest.fixture
def cap_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., EventCap]:
    """Makes a cap that wants to end the recording at once; a better moment is waited for without end."""
    monkeypatch.setattr(event_cap, "heap_reader", lambda: lambda: Heap(used=0, free=0))
    monkeypatch.setattr(event_cap, "_MOST_DELAYS", sys.maxsize)

    def make(finish: Callable[[], object], folder: str = "<none>") -> EventCap:
        return EventCap(1, finish, Recorded(), NoRoom(Recorded(), follows_python=False), folder)

    return make


def test_a_full_queue_of_pending_calls_is_tried_again(
    cap_of: Callable[..., EventCap], monkeypatch: pytest.MonkeyPatch
) -> None:
    really, refused = ctypes.pythonapi.Py_AddPendingCall, []
    finished = threading.Event()

    def full_at_first(function: object, argument: object) -> int:
        if len(refused) < 3:
            refused.append(function)
            return -1
        return int(really(function, argument))

    monkeypatch.setattr(ctypes.pythonapi, "Py_AddPendingCall", full_at_first)
    cap = cap_of(finished.set)
    cap.start()
    assert _soon(finished.is_set)
    cap.stop()
    assert len(refused) == 3


def test_memory_that_a_program_allocates_ends_no_recording_of_few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[int] = []

    def grown() -> Heap:
        readings.append(1)
        return Heap(used=len(readings) << 18, free=0)

    monkeypatch.setattr(event_cap, "heap_reader", lambda: grown)
    monkeypatch.setattr(Room, "is_short", lambda *_: False)
    finished = threading.Event()
    cap = EventCap(100, finished.set, Recorded(), Room(Recorded(), follows_python=False))
    cap.start()
    assert _soon(lambda: finished.is_set() or len(readings) > 40)
    cap.stop()
    assert not finished.is_set()


#: Ends a part and begins the next one, which is full at once: as `KinetoHook` does, on a machine that is slow there.
_NEXT_PART = """
import sys, threading, time
from mtprof_nb.capture.kineto import event_cap
from mtprof_nb.capture.kineto.event_cap import EventCap, Heap, Room
from mtprof_nb.model.trace import Recorded

class NoRoom(Room):
    def is_short(self, held, free):
        return True

def cap_of(finish):
    return EventCap(1, finish, Recorded(), NoRoom(Recorded(), follows_python=False))

def next_part():
    caps.append(cap_of(ended.set))
    caps[-1].start()
    sys.setprofile(lambda *_: None)  # Kineto follows Python again
    time.sleep(0.5)
    ended.is_set()

event_cap.heap_reader = lambda: lambda: Heap(used=0, free=0)
ended = threading.Event()
caps = [cap_of(next_part)]
caps[0].start()
while not ended.is_set():
    time.sleep(0.001)
for cap in caps:
    cap.stop()
print("ended")
"""


def test_a_part_that_is_full_while_it_is_still_being_started_ends_after_that() -> None:
    command = [sys.executable, "-c", _NEXT_PART]
    assert subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout == "ended\n"


@pytest.mark.parametrize(("name", "is_put_off"), [("torch", True), ("torchvision", False)])
def test_only_code_in_the_runtimes_own_folder_puts_the_end_off(
    cap_of: Callable[..., EventCap], tmp_path: Path, name: str, is_put_off: bool
) -> None:
    finished = threading.Event()
    cap = cap_of(finished.set, str(tmp_path / "torch"))
    asked: list[bool] = []
    put_off = cap._should_be_delayed

    def noted() -> bool:
        asked.append(put_off())
        return asked[-1]

    cap._should_be_delayed = noted  # type: ignore[method-assign]
    library: dict[str, object] = {"soon": _soon, "done": lambda: finished.is_set() or len(asked) > 2}
    exec(compile("def work(): return soon(done)", str(tmp_path / name / "nn.py"), "exec"), library)
    cap.start()
    work = library["work"]
    assert callable(work)
    assert work()
    cap.stop()
    assert (asked[0], finished.is_set()) == (is_put_off, not is_put_off)


@pytest.mark.parametrize(
    ("count", "is_short", "reason"),
    [
        (2, False, "memory use suggests that max_events=10 was reached; raise max_events"),
        (12, False, "max_events=10 was reached; raise max_events, or use a schedule"),
        (
            2,
            True,
            "Kineto needs more memory to end a longer recording than is available; use fewer flags, or a schedule",
        ),
    ],
)
def test_a_recording_that_a_limit_ended_says_why(
    cap_of: Callable[..., EventCap], count: int, is_short: bool, reason: str
) -> None:
    cap = cap_of(lambda: None)
    cap.is_short = is_short

    assert why_ended(10, count, cap) == reason


def _soon(is_so: Callable[[], bool]) -> bool:
    """Run Python until `is_so`, so that pending calls have a moment to be made."""
    until = time.monotonic() + 300
    while not is_so() and time.monotonic() < until:
        time.sleep(0.001)
    return is_so()
