"""Records under a limit of the process's memory: `python limited_program.py MEGABYTES ...`, which are free at first.

Prints for each limit how the recording ends where it stays, and where memory is freed before `stop()`: whole, cut or
lost. A child process has the limit.
"""

import os
import resource
import sys
import warnings
from itertools import product
from pathlib import Path

import torch

import mtprof_nb as mtp

_EVENTS = 300_000
_FLAGS = dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_modules"), True)


def used_bytes() -> int:
    """The size of this process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def run_ops() -> int:
    """Run small ops until they are many, or memory ends; returns how many ended."""
    x, done = torch.ones(2), 0
    try:
        while done < _EVENTS:
            x.neg()
            done += 1
    except (RuntimeError, MemoryError):  # the program's own want of memory
        pass
    return done


def outcome(megabytes: int, is_freed: bool) -> str:
    """How a recording ends that has so much memory, and more at its end where some is freed."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    prof = mtp.profile(hook="native", **_FLAGS)
    prof.start()
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes() + (megabytes << 20), hard))
    done = run_ops()
    if is_freed:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        prof.stop()
        found, notes = prof.trace, prof.summary().notes
        assert 0 <= len(found) + found.dropped - done < 10, (len(found), found.dropped, done)
        ended = "cut" if any("there was not enough memory; free some" in note for note in notes) else "whole"
    except MemoryError as error:
        ended = "lost" if "record less" in str(error) else f"unexpected: {error}"
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    assert mtp.active() is None
    with mtp.profile(hook="native", **_FLAGS) as after:
        torch.ones(2).neg()
    assert [event.name for event in after.events()].count("aten::neg") == 1
    return ended


def main() -> None:
    warnings.simplefilter("ignore")
    with mtp.profile(hook="native", **_FLAGS):
        torch.ones(2).neg()
    for megabytes, is_freed in product(map(int, sys.argv[1:]), (False, True)):
        child = os.fork()
        if child == 0:
            print(outcome(megabytes, is_freed), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"{megabytes} MB: the process ended with {status}"


if __name__ == "__main__":
    main()
