"""A program that computes now and then, on one core: `python -m benchmarks.neighbour CORE`. It ends with its parent."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.child import ROOT, keep_to

#: Seconds of work and of rest, in the mean.
_WORK, _REST = 0.3, 0.5


@contextmanager
def neighbours(cores: list[int]) -> Iterator[None]:
    """Run a neighbour on each of the cores."""
    command = [sys.executable, "-m", "benchmarks.neighbour"]
    running = [subprocess.Popen([*command, str(core)], cwd=ROOT) for core in cores]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
            process.wait()


def main(core: str) -> None:
    """Work and rest, for random times, until the parent is gone."""
    keep_to(int(core))
    block, parent = bytearray(1 << 22), os.getppid()
    while os.getppid() == parent:
        until = time.monotonic() + random.expovariate(1 / _WORK)
        while time.monotonic() < until:
            # Copies take the cache and the memory's bandwidth, sums the processor.
            sum(range(20_000))
            bytes(block)
        time.sleep(random.expovariate(1 / _REST))


if __name__ == "__main__":
    main(*sys.argv[1:])
