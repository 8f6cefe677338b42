"""Samples of the native recorder as it returns them, made by hand."""

from typing import Any

import numpy as np

from mtprof_nb.capture.native.native_sampler import NativeSampler
from mtprof_nb.capture.samples.sampled_stacks import SampledStacks


class Recorder:
    """A recorder that has taken three samples: of thread 7, of thread 8, and of thread 7 again."""

    def __init__(self, awake: list[int], **told: int) -> None:
        longs = {"asked": [90, 91, 290], "taken": [100, 101, 300], "thread": [7, 8, 7], "awake": awake}
        longs["computed"] = [-1, -1, -1]
        nodes = {"node": [0, 0, 0], "node_parent": [-1], "node_code": [0], "node_line": [1], "node_module": [-1]}
        self._raw: dict[str, Any] = {name: np.array(column, np.int64).tobytes() for name, column in longs.items()}
        self._raw |= {name: np.array(column, np.int32).tobytes() for name, column in nodes.items()}
        self._raw |= {"is_waiting": bytes(3), "certainty": bytes(3), "codes": [("train.py", "train")]}
        self._raw |= {"cut": 0, "lost": 0, **told}

    def stop_sampler(self) -> dict[str, Any]:
        return self._raw


def read(awake: list[int], **told: int) -> SampledStacks:
    found = NativeSampler(Recorder(awake, **told)).stop()
    assert found is not None
    return found


def test_the_thread_that_ends_the_sampler_had_not_slept_for_longer_at_its_last_sample() -> None:
    # At 300 it seems to have slept for 250, as its wait for a processor was not over: at the end it had for 60.
    found = read([50, 10, 50], ended_by=7, asleep_at_end=60)

    assert found.awake_ns.tolist() == [50, 10, 240]


def test_a_thread_that_slept_before_its_samples_and_not_since_is_told_as_counted() -> None:
    assert read([50, 10, 240], ended_by=7, asleep_at_end=80).awake_ns.tolist() == [50, 10, 240]


def test_where_the_sleep_at_the_end_is_not_known_times_are_told_as_counted() -> None:
    assert read([50, 10, 50], ended_by=7, asleep_at_end=-1).awake_ns.tolist() == [50, 10, 50]
    assert read([-1, 10, -1], ended_by=7, asleep_at_end=0).awake_ns.tolist() == [-1, 10, -1]


def test_notes_tell_of_deep_stacks_and_of_lost_samples() -> None:
    deep, lost = read([1, 1, 1], ended_by=7, asleep_at_end=0, cut=2_000, lost=9).notes

    assert deep.startswith("In 2,000 samples the Python stack was over 4,000 calls deep")
    assert lost.startswith("9 samples of Python code were lost")
