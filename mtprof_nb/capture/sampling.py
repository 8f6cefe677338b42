"""Chooses how the Python stacks of all threads are sampled during a window."""

from __future__ import annotations

from types import CodeType
from typing import Protocol

from mtprof_nb.capture.native.native_sampler import NativeSampler
from mtprof_nb.capture.shared.python_sampler import PythonSampler
from mtprof_nb.capture.shared.python_stacks import running_cell
from mtprof_nb.capture.shared.sampled_stacks import SampledStacks


class Sampler(Protocol):
    """Looks at the stacks of all threads from `start` to `stop`, which leaves nothing installed."""

    def start(self, outermost: CodeType | None) -> None:
        """Look at the threads from now on; stacks end at a frame of `outermost`."""

    def stop(self) -> SampledStacks | None:
        """End it. Returns the samples; None where it was not started."""

    def abandon(self) -> None:
        """End it and keep nothing, also in a forked child."""


def started_sampler() -> Sampler:
    """A sampler that runs: the native one if it is built, else one in Python."""
    sampler: Sampler = NativeSampler.if_built() or PythonSampler()
    sampler.start(running_cell())
    return sampler
