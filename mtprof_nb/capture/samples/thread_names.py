"""Threads: their names, as Python or the system knows them, and their innermost frames."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import FrameType

from mtprof_nb.building.paused_collector import collector_paused


def running_threads() -> dict[int, str]:
    """The names of Python's threads that run now, by native id."""
    threads = threading.enumerate()
    return {thread.native_id: thread.name for thread in threads if thread.native_id is not None}


def native_ids_by_low_half() -> dict[int, int]:
    """The native ids of Python's threads that run now, by the low half of Python's numbers of them."""
    threads = threading.enumerate()
    return {(thread.ident or 0) & 0xFFFFFFFF: thread.native_id or 0 for thread in threads}


def ids_of_main_thread() -> set[int]:
    """The native ids under which the main thread may be known: in a forked child, Python still has its parent's."""
    noted = threading.main_thread().native_id
    return {os.getpid(), *([] if noted is None else [noted])}


def name_of_native_thread(native_id: int) -> str:
    """The system's name of a thread that Python did not start; "" where it is only the name of the process."""
    try:
        name = Path(f"/proc/self/task/{native_id}/comm").read_text().strip()
        return "" if name == Path("/proc/self/comm").read_text().strip() else name
    except OSError:
        return ""


def frames_of_others() -> dict[int, FrameType]:
    """The innermost frame of each thread but this one, by the thread's ident."""
    # Python 3.11 makes frames under a lock. A collection there may free objects that need the same lock.
    with collector_paused():
        frames = sys._current_frames()
    # Without this thread: a frame that a caller's local refers to is a cycle, which keeps all their locals alive.
    frames.pop(threading.get_ident(), None)
    return frames
