"""`python -m benchmarks.verdicts`: how often a comparison is right, on programs whose difference is known.

Functions in turns: 20 parts of a program against 20, 21, 22 and 26 parts of it. Recordings: of one program, each in a
process of its own; every verdict of a difference is wrong. All of it is measured twice: on a machine that does nothing
else, and beside a program on each core that computes now and then. The tables are written into docs/comparing.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks import child
from benchmarks.neighbour import neighbours
from benchmarks.programs import PROGRAMS
from benchmarks.verdict_tables import CHANGES, PARTS, put_into, tables

#: A part of a program is one step, and more where a step takes very little time.
_STEPS_A_PART = {"python-heavy": 8}
_PROGRAMS = {program.name: program for program in PROGRAMS}
_RECORDED_STEPS = 30
#: Comparisons in one process; each has models of its own.
_IN_A_PROCESS = 6
_DOCS = child.ROOT / "docs" / "comparing.md"
_RESULTS = child.ROOT / "build" / "verdicts.json"

Results = dict[str, list[Any]]


def in_turns(program: str, parts: list[int], seconds: float, core: int) -> list[dict[str, Any]]:
    """For each number of parts, times of the standard number of parts of a program, and of that number."""
    from mtprof_nb.comparison.alternation import Alternation

    child.keep_to(core)
    found = []
    for count in parts:
        each = _STEPS_A_PART.get(program, 1)
        a, b = (_PROGRAMS[program].prepare(each * number) for number in (PARTS, count))
        times = Alternation(a, b, seconds=seconds).run()
        found.append({"program": program, "parts": count, "a_ns": times.a_ns, "b_ns": times.b_ns})
    return found


def recorded(core: int) -> list[dict[str, Any]]:
    """The steps of one recording of each program, in nanoseconds."""
    import mtprof_nb
    from mtprof_nb.comparison.differences import step_lengths

    child.keep_to(core)
    found = {}
    for program in _PROGRAMS.values():
        step = program.prepare(_STEPS_A_PART.get(program.name, 1))
        with mtprof_nb.profile() as prof:
            for number in range(_RECORDED_STEPS):
                if number:
                    prof.step()
                step()
        found[program.name] = step_lengths(prof.trace)
    return [{"steps": found}]


@dataclass(frozen=True)
class Amount:
    """How much is measured: comparisons of each program with itself and with each change, and recordings of it."""

    same: int
    changed: int
    recordings: int
    seconds: float

    def tasks(self) -> list[tuple[str, str, tuple[Any, ...]]]:
        """Calls of functions of this module, in random order: the list of results, the function, its arguments."""
        found: list[tuple[str, str, tuple[Any, ...]]] = [("recordings", "recorded", ())] * self.recordings
        for program in _PROGRAMS:
            parts = [count for count in CHANGES for _ in range(self.same if count == PARTS else self.changed)]
            random.shuffle(parts)
            groups = [parts[first : first + _IN_A_PROCESS] for first in range(0, len(parts), _IN_A_PROCESS)]
            found += [("turns", "in_turns", (program, group, self.seconds)) for group in groups]
        random.shuffle(found)
        return found


def measure(amount: Amount, is_beside: bool, into: Path) -> None:
    """Add comparisons and recordings to the results, one process a core; an interrupt leaves those that are done."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    tasks, lock = amount.tasks(), Lock()
    total = len(tasks)

    def work(core: int) -> None:
        while True:
            with lock:
                if not tasks:
                    return
                kind, function, arguments = tasks.pop()
            found = child.call(f"benchmarks.verdicts:{function}", *arguments, core)
            with lock:
                _add(into, kind, [{**one, "is_beside": is_beside, "seconds": amount.seconds} for one in found])
                print(f"{total - len(tasks)} of {total} begun", file=sys.stderr, flush=True)

    with neighbours(cores) if is_beside else nullcontext(), ThreadPoolExecutor(len(cores)) as pool:
        list(pool.map(work, cores))


def _add(into: Path, kind: str, found: list[dict[str, Any]]) -> None:
    results = _read(into)
    results[kind] += found
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text(json.dumps(results))


def _read(path: Path) -> Results:
    found: Results = json.loads(path.read_text()) if path.exists() else {"turns": [], "recordings": []}
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the tables of everything that was measured so far."""
    parser = argparse.ArgumentParser("python -m benchmarks.verdicts", description=__doc__)
    option: Callable[..., Any] = parser.add_argument
    option("--same", type=int, default=20, help="comparisons of each program with itself")
    option("--changed", type=int, default=6, help="comparisons of each program with each change")
    option("--recordings", type=int, default=20, help="recordings of each program")
    option("--seconds", type=float, default=3.0, help="how long functions run in turns")
    option("--only", choices=["alone", "beside"], help="measure on one kind of machine only")
    option("--results", type=Path, default=_RESULTS, help="file that results are added to")
    option("--docs", action="store_true", help="put the tables into docs/comparing.md")
    chosen = parser.parse_args(arguments)
    amount = Amount(chosen.same, chosen.changed, chosen.recordings, chosen.seconds)
    for kind in ("alone", "beside"):
        if chosen.only in (None, kind):
            measure(amount, kind == "beside", chosen.results)
    text = tables(_read(chosen.results))
    print(text)
    if chosen.docs:
        put_into(_DOCS, text)


if __name__ == "__main__":
    main()
