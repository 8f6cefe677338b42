"""Notes each garbage collection of a window: when it ran, of which generation, and on which thread."""

from __future__ import annotations

import gc
import threading
import time
from array import array
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.capture.hook import EventTimes
from mtprof_nb.model.trace import Collections, Int8, Int64, Trace


class WatchedCollections(NamedTuple):
    """When each collection began and ended, by `time.perf_counter_ns`, the native id of its thread, its generation."""

    start_ns: Int64
    end_ns: Int64
    thread: Int64
    generation: Int8


class CollectorWatch:
    """Listens to Python's garbage collector from `start` to `stop`; a collection costs two to three microseconds.

    Its callbacks are put together of functions in C. A function in Python would run the handler of a signal that came
    during a collection, and Python drops what a callback raises: the user's interrupt would be lost. Neither do they
    look at frames: making a frame object may start a collection, and Python 3.11 crashes if that makes the same one.
    """

    def __init__(self) -> None:
        # Arrays hold no objects, which would start collections themselves.
        self._start_ns, self._end_ns, self._thread = array("q"), array("q"), array("q")
        self._generation = array("b")
        last: Any = _last_dict()
        begun = zip(
            map(self._start_ns.append, iter(time.perf_counter_ns, None)),
            map(self._thread.append, iter(threading.get_native_id, None)),
            map(self._generation.append, iter(partial(last.get, "generation"), None)),
            strict=False,
        )
        ended = map(self._end_ns.append, iter(time.perf_counter_ns, None))
        # A callback is called with a phase, "start" or "stop", and a dict: setattr(last, phase, dict) keeps the dict,
        # and getattr(noted, phase, dict) asks an iterator for its next value, which appends one.
        nexts = {"start": property(partial(next, begun)), "stop": property(partial(next, ended))}
        noted = type("Noted", (), nexts)()
        self._callbacks = [partial(setattr, last), partial(getattr, noted)]
        # Whoever looks at `gc.callbacks` sees whose they are.
        for callback in self._callbacks:
            vars(callback)["__module__"] = __name__

    def start(self) -> None:
        """Listen from now on, in the place of a watch whose end has failed, as at the limit of recursion."""
        gc.callbacks[:] = [one for one in gc.callbacks if getattr(one, "__module__", "") != __name__]
        gc.callbacks.extend(self._callbacks)

    def stop(self) -> WatchedCollections:
        """End it. Harmless where it was not started."""
        for callback in self._callbacks:
            with suppress(ValueError):
                gc.callbacks.remove(callback)
        # One that ran as the watch began has an end alone, and one that runs now a beginning alone.
        start_ns, end_ns = np.array(self._start_ns, np.int64), np.array(self._end_ns, np.int64)
        if len(end_ns) and (not len(start_ns) or end_ns[0] < start_ns[0]):
            end_ns = end_ns[1:]
        count = min(len(start_ns), len(end_ns))
        thread, generation = np.array(self._thread, np.int64), np.array(self._generation, np.int8)
        return WatchedCollections(start_ns[:count], end_ns[:count], thread[:count], generation[:count])


def _last_dict() -> Any:
    """A dict that takes over the members of each dict that is assigned to its `start` or `stop`."""
    takes_over = property(fset=dict.update)
    return type("LastDict", (dict,), {"start": takes_over, "stop": takes_over})()


def with_collections(trace: Trace, watched: WatchedCollections, event_times: EventTimes) -> Trace:
    """`trace` with the collections that ran in its window, after the profiler had started."""
    start_ns, end_ns = event_times(watched.start_ns), event_times(watched.end_ns)
    tracks = {track.native_id: number for number, track in enumerate(trace.tracks) if track.kind == "thread"}
    made = Collections(
        start_ns=start_ns,
        duration_ns=np.maximum(end_ns - start_ns, 0),
        generation=watched.generation.clip(0, 2),
        track=np.array([tracks.get(thread, -1) for thread in watched.thread.tolist()], np.int32),
    )
    is_own = start_ns < trace.began_ns + trace.own_ns
    return replace(trace, collections=made.take(~is_own & (end_ns <= trace.ended_ns)))
