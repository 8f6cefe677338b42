"""Samples of Python stacks as a sampler returns them, and how they become part of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mtprof_nb.capture.hook import EventTimes
from mtprof_nb.capture.samples.thread_names import ids_of_main_thread, name_of_native_thread, running_threads
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.stack_tree import StackInterner
from mtprof_nb.model.trace import Bool, Columns, Int8, Int32, Int64, Samples, StackTree, Trace, Track

#: How far apart samples are, on average. On the path of an op they cost nothing; of Python code, less than one percent.
PERIOD_NS = 2_000_000
#: A thread that slept in a larger share of its samples did hardly anything.
_MOSTLY = 0.8
_MOST_UNKNOWN = 1_000


@dataclass(frozen=True)
class SampledStacks:
    """Samples in the order in which they were taken, with times of `time.perf_counter_ns`."""

    asked_ns: Int64
    taken_ns: Int64
    #: Native ids.
    thread: Int64
    #: A node of `tree`, or -1.
    stack: Int32
    is_waiting: Bool
    #: How long the thread had not been asleep, from some moment of its own on; -1 if unknown.
    awake_ns: Int64
    #: How long it had computed, in the same way.
    computed_ns: Int64
    #: False for stacks of the profiler's and a notebook's own threads, which run no code of the user.
    is_of_user: Bool
    #: How surely the thread was there, as in `Samples`.
    certainty: Int8
    tree: StackTree
    #: Sentences about all of them.
    notes: tuple[str, ...] = ()
    thread_names: Mapping[int, str] = field(default_factory=running_threads)

    def take(self, chosen: Bool) -> SampledStacks:
        """The samples for which `chosen` is true."""
        columns: Columns = {
            name: column[chosen] for name, column in vars(self).items() if isinstance(column, np.ndarray)
        }
        return replace(self, **columns)


def with_samples(trace: Trace, sampled: SampledStacks, event_times: EventTimes) -> Trace:
    """`trace` with these samples, and with the threads and stacks that they add."""
    kept = sampled.take(_is_of_program(sampled) & ~_of_idle_threads(sampled))
    made: Columns = {"stacks": kept.tree}
    stack = kept.stack
    if trace.stacks is not None:
        interner = StackInterner(trace.stacks)
        stack = np.append(interner.add(kept.tree), np.int32(-1))[stack]
        made["stacks"] = interner.tree()
    track, made["tracks"] = _tracks(trace, kept)
    times = event_times(kept.asked_ns), event_times(kept.taken_ns)
    made["samples"] = Samples(*times, track, stack, kept.is_waiting, kept.awake_ns, kept.computed_ns, kept.certainty)
    return replace(trace, notes=(*trace.notes, *sampled.notes), **made)


def sampled_from(trace: Trace, from_ns: int) -> Trace:
    """`trace`, whose samples began at `from_ns`: until then, the function that the main thread ran is not known."""
    main = ids_of_main_thread()
    tracks = [number for number, track in enumerate(trace.tracks) if track.native_id in main]
    if trace.samples is None or not tracks:
        return trace
    began_ns = min(trace.began_ns + trace.own_ns, from_ns)
    # As many samples as usual, in which nothing is seen: the time of each is its error.
    count = min((from_ns - began_ns) // PERIOD_NS, _MOST_UNKNOWN) + 2
    times = np.linspace(began_ns, from_ns, count).astype(np.int64)
    track, nothing = np.full(count, tracks[0], np.int32), np.full(count, -1, np.int64)
    unknown = Samples(times, times, track, nothing.astype(np.int32), np.zeros(count, np.bool_), nothing)
    note = (
        f"PyTorch was imported {(from_ns - trace.began_ns) / 1e9:.1f} s after the recording began: "
        "Python functions of the time before were not recorded"
    )
    return replace(trace, samples=Samples.joined([unknown, trace.samples]), notes=(*trace.notes, note))


def samples_within(trace: Trace, texts: Mapping[str, str]) -> Columns:
    """`samples` of `trace` without those on a line behind the end of its text, where a call ends the recording."""
    if trace.samples is None or trace.stacks is None:
        return {}
    ends = {file: len(text.splitlines()) for file, text in texts.items()}
    is_behind = [frame.line > ends.get(frame.file, frame.line) for frame in trace.stacks.frames]
    chosen = ~np.append(_stacks_with(trace.stacks, is_behind), False)[trace.samples.stack]
    return {"samples": trace.samples.take(chosen)}


def _is_of_program(sampled: SampledStacks) -> Bool:
    """The samples of the main thread, and those of the user's other threads in which a frame is not hidden."""
    is_main = np.isin(sampled.thread, list(ids_of_main_thread()))
    is_of_program: Bool = is_main | (sampled.is_of_user & (sampled.stack >= 0))
    return is_of_program


def _of_idle_threads(sampled: SampledStacks) -> Bool:
    """The samples of threads other than the main one that did nothing for the user.

    Such a thread slept in every sample from the first to the last. Or it ran no code of the user, and slept in most:
    libraries have threads that forward messages between processes.
    """
    is_idle, main = np.zeros(len(sampled.thread), np.bool_), ids_of_main_thread()
    is_user = [is_user_file(frame.file) for frame in sampled.tree.frames]
    of_user = np.append(_stacks_with(sampled.tree, is_user), False)
    for native_id in np.unique(sampled.thread).tolist():
        own = sampled.thread == native_id
        asleep = sampled.is_waiting[own]
        was_there = sampled.asked_ns[own][[0, -1]] == sampled.asked_ns[[0, -1]]
        is_service = not of_user[sampled.stack[own]].any() and asleep.mean() > _MOSTLY
        if native_id not in main and (is_service or (was_there.all() and asleep.all())):
            is_idle |= own
    return is_idle


def _stacks_with(tree: StackTree, is_chosen: Sequence[bool]) -> Bool:
    """Whether each stack has a frame that is chosen; `is_chosen` has a value for each frame of the tree."""
    has_chosen: list[bool] = []
    for frame, parent in zip(tree.frame.tolist(), tree.parent.tolist(), strict=True):
        has_chosen.append(is_chosen[frame] or (parent >= 0 and has_chosen[parent]))
    return np.array(has_chosen, np.bool_)


def _tracks(trace: Trace, sampled: SampledStacks) -> tuple[Int32, tuple[Track, ...]]:
    """The track of each sample, and the tracks of `trace` followed by those of threads without events."""
    known = {track.native_id: number for number, track in enumerate(trace.tracks) if track.kind == "thread"}
    tracks = list(trace.tracks)
    native_ids, position = np.unique(sampled.thread, return_inverse=True)
    for native_id in native_ids.tolist():
        if native_id not in known:
            known[native_id] = len(tracks)
            name = sampled.thread_names.get(native_id) or name_of_native_thread(native_id)
            tracks.append(Track(native_id, name))
    return np.array([known[native_id] for native_id in native_ids.tolist()], np.int32)[position], tuple(tracks)
