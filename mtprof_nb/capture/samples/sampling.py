"""Chooses how the Python stacks of all threads are sampled during a window."""

from __future__ import annotations

from types import CodeType
from typing import Protocol

from mtprof_nb.capture.native.native_sampler import NativeSampler
from mtprof_nb.capture.samples.python_sampler import PythonSampler
from mtprof_nb.capture.samples.python_stacks import running_cell
from mtprof_nb.capture.samples.sampled_stacks import SampledStacks


class Sampler(Protocol):
    """Looks at the stacks of all threads from `start` to `stop`, which leaves nothing installed."""

    def start(self, outermost: CodeType | None) -> bool:
        """Look at the threads from now on; stacks end at a frame of `outermost`. False where the system forbids it."""

    def stop(self) -> SampledStacks | None:
        """End it. Returns the samples; None where it was not started."""

    def abandon(self) -> None:
        """End it and keep nothing, also in a forked child."""


def started_sampler() -> Sampler:
    """A sampler that runs: the native one if it is built and the system lets it, else one in Python."""
    sampler = started_native_sampler()
    if sampler is None:
        sampler = PythonSampler()
        sampler.start(running_cell())
    return sampler


def started_native_sampler() -> Sampler | None:
    """The native sampler, which runs; None where it is not built, the system forbids it, or torch is not imported."""
    sampler = NativeSampler.if_built()
    return sampler if sampler is not None and sampler.start(running_cell()) else None
