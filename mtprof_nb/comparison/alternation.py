"""Runs two functions in turns, and measures both.

A pair is a block of calls of each, in an order that a coin decides. If the two functions are equal, the coin alone
decides which block of a pair is called a's, whatever else the machine does: so noise does not make the test wrong. This
holds only if both blocks are measured in one way: the median of two noisy calls is larger than that of three.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat as times
from random import SystemRandom
from statistics import median
from typing import Any

Function = Callable[[], Any]
Clock = Callable[[], int]

#: Length of a block of short calls. Shorter blocks follow each other closer, so that both see the same machine.
_BLOCK_NS = 20_000_000
#: A time is read so rarely that reading it takes no share of the measured time.
_SAMPLE_NS = 50_000
FEWEST_PAIRS, MOST_PAIRS = 10, 250
_CALIBRATION_NS, _MOST_LOOPS = 15_000_000, 1 << 20
#: Functions whose calls differ by less than this factor get the same block. Noise alone stays below it.
_SAME_BLOCK = 4.0
_COLLECT_AFTER_NS = 1_000_000_000


@dataclass(frozen=True)
class TimedBlock:
    """How a function is measured: `samples` times of `loops` calls each; the median of them is the block's time."""

    samples: int
    loops: int

    @property
    def calls(self) -> int:
        """Calls in a block."""
        return self.samples * self.loops


@dataclass(frozen=True)
class Alternated:
    """Times of two functions in turns: for each pair of blocks, nanoseconds of a call of each."""

    a_ns: tuple[float, ...]
    b_ns: tuple[float, ...]
    a_block: TimedBlock
    b_block: TimedBlock
    #: Pairs that were planned: more than there are after an interrupt, or if they took much longer than expected.
    planned: int
    seconds: float
    is_interrupted: bool = False


class Alternation:
    """Measures `a` and `b`: `pairs` blocks of each, or as many as fit in `seconds` (from 10 to 250).

    Making it calls both functions at least twice, to learn how long they take. `run` may be interrupted.
    """

    def __init__(
        self,
        a: Function,
        b: Function,
        pairs: int | None = None,
        seconds: float = 10.0,
        *,
        clock: Clock = time.perf_counter_ns,
        coin: Callable[[], bool] | None = None,
    ) -> None:
        self._functions = a, b
        self._clock = clock
        self._coin = coin or _coin
        self._wait = device_wait()
        call_ns = [self._call_ns(function) for function in self._functions]
        self._blocks = _blocks(*call_ns)
        pair_ns = sum(block.calls * ns for block, ns in zip(self._blocks, call_ns, strict=True))
        fitting = int(seconds * 1e9 / max(pair_ns, 1))
        self.pairs = pairs or min(max(fitting, FEWEST_PAIRS), MOST_PAIRS)
        #: On a machine that is busier than it was, fewer pairs are measured than planned.
        self._most_ns = math.inf if pairs else 2e9 * seconds
        #: Seconds that `run` will take, about.
        self.seconds = self.pairs * pair_ns / 1e9

    def run(self, progress: Callable[[float], None] | None = None) -> Alternated:
        """Measure all pairs. An interrupt ends it with those it has, and is raised if there are none."""
        measured: tuple[list[float], list[float]] = [], []
        began, is_interrupted = self._clock(), False
        try:
            self._measure_pairs(measured, began + self._most_ns, progress)
        except KeyboardInterrupt:
            if not all(measured):
                raise
            is_interrupted = True
        complete = min(map(len, measured))
        return Alternated(
            a_ns=tuple(measured[0][:complete]),
            b_ns=tuple(measured[1][:complete]),
            a_block=self._blocks[0],
            b_block=self._blocks[1],
            planned=self.pairs,
            seconds=(self._clock() - began) / 1e9,
            is_interrupted=is_interrupted,
        )

    def _measure_pairs(
        self, measured: tuple[list[float], list[float]], deadline: float, progress: Callable[[float], None] | None
    ) -> None:
        """Measure all pairs, or those that end before the deadline, whichever function is slower."""
        with _collector_paused(self._clock) as collect:
            for number in range(1, self.pairs + 1):
                self._measure_pair(measured)
                collect()
                if progress is not None:
                    progress(number / self.pairs)
                if number >= FEWEST_PAIRS and self._clock() > deadline:
                    break

    def _measure_pair(self, measured: tuple[list[float], list[float]]) -> None:
        first = int(self._coin())
        for side in (first, 1 - first):
            measured[side].append(self._block_ns(self._functions[side], self._blocks[side]))

    def _block_ns(self, function: Function, block: TimedBlock) -> float:
        samples = [self._sample_ns(function, block.loops) for _ in range(block.samples)]
        return median(samples) / block.loops

    def _sample_ns(self, function: Function, loops: int) -> int:
        clock, wait = self._clock, self._wait
        began = clock()
        for _ in times(None, loops):
            function()
        wait()
        return clock() - began

    def _call_ns(self, function: Function) -> float:
        """Nanoseconds of one call when nothing disturbs it, and once warm: the first call may compile."""
        function()
        fastest, spent, loops = math.inf, 0, 1
        while spent < _CALIBRATION_NS and loops <= _MOST_LOOPS:
            took = self._sample_ns(function, loops)
            fastest, spent, loops = min(fastest, took / loops), spent + took, loops * 2
        return max(fastest, 1.0)


def device_wait() -> Function:
    """A function that waits until torch's accelerator, if there is one, has done its work."""
    accelerator = getattr(sys.modules.get("torch"), "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        wait: Function = accelerator.synchronize
        return wait
    return lambda: None


def _coin() -> bool:
    """Heads or tails, whatever seed the user has set; the user's generators are not touched."""
    return SystemRandom().random() < 0.5


def _blocks(a_ns: float, b_ns: float) -> tuple[TimedBlock, TimedBlock]:
    """The blocks of two functions by the time of a call: the same, unless one takes many times as long."""
    if max(a_ns, b_ns) < _SAME_BLOCK * min(a_ns, b_ns):
        return (_block(math.sqrt(a_ns * b_ns)),) * 2
    return _block(a_ns), _block(b_ns)


def _block(call_ns: float) -> TimedBlock:
    loops = max(round(_SAMPLE_NS / call_ns), 1)
    samples = max(round(_BLOCK_NS / (loops * call_ns)), 1)
    # Of an odd number, the median is one of the samples: with two, a single very long one would decide.
    return TimedBlock(samples | 1, loops)


@contextmanager
def _collector_paused(clock: Clock) -> Iterator[Function]:
    """Keep Python's collector from running inside a block. The function that is given runs it, at most once a second.

    A user who has switched it off has it off.
    """
    if not gc.isenabled():
        yield lambda: None
        return
    last = clock()

    def collect() -> None:
        nonlocal last
        if clock() - last > _COLLECT_AFTER_NS:
            gc.collect()
            last = clock()

    gc.collect()
    gc.disable()
    try:
        yield collect
    finally:
        gc.enable()
