"""`python -m benchmarks.bounds`: whether the upper bound of each finding is one, by doing its fix.

Each pair of `bound_pairs` is a program with one flaw, and the program after the fix. Both run in turns, unprofiled; the
first is then recorded. The bound has to be at least the time that the fix saved, and for memory at least the bytes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import child
from benchmarks.bound_pairs import OF_MEMORY, PAIRS, Pair

#: Rounds, and how often a program runs in one: more often only while other programs took the processor each time.
_ROUNDS, _RUNS, _MOST_RUNS = 5, 5, 40
#: A run is undisturbed if its thread was without a processor for less than this part of it.
_LOST = 0.02
#: How long a recording is at least, on a quiet machine.
_RECORDED_NS = 6_000_000
#: Gains and bounds that differ by less than this part of the program's time are noise.
_NOISE = 0.04


class Checked(NamedTuple):
    """The gain of a fix and the bound of its finding, both as shares of the flawed program's time or peak."""

    rule: str
    name: str
    before: float
    gain: float
    #: None where the rule found nothing.
    bound: float | None
    is_memory: bool

    @property
    def holds(self) -> bool:
        """Whether the bound is one."""
        return self.bound is None or self.bound >= self.gain - _NOISE


def _code(text: str, name: int) -> Any:
    """Compiled as a file of its own, so that its lines are known."""
    file = Path(tempfile.gettempdir(), f"bounds_{name}.py")
    file.write_text(text)
    return compile(text, str(file), "exec")


def _undisturbed(run: Callable[[], object], most: int) -> tuple[int, Any]:
    """The time in nanoseconds and the result of the shortest run, of `most` at most: disturbances only add time."""
    best: tuple[int, Any] | None = None
    for number in range(most):
        began, computed = time.perf_counter_ns(), time.thread_time_ns()
        result = run()
        took, computed = time.perf_counter_ns() - began, time.thread_time_ns() - computed
        best = (took, result) if best is None or took < best[0] else best
        if number >= _RUNS and took == best[0] and took - computed < _LOST * took:
            break
    assert best is not None
    return best


def check(number: int, is_memory: bool) -> list[Any]:
    """Measure one pair; the fields of `Checked`."""
    import mtprof_nb as mtp
    from mtprof_nb.advice.advising import RULES, placed
    from mtprof_nb.analysis.summary import peak_bytes

    pair: Pair = (OF_MEMORY if is_memory else PAIRS)[number]
    names: dict[str, Any] = {}
    exec(pair.before, names)
    flawed, fixed = (partial(exec, _code(text, at), names) for at, text in enumerate((pair.flawed, pair.fixed)))

    def recorded(run: Callable[[], object], times: int = 1) -> Any:
        with mtp.profile(record_shapes=True, profile_memory=True, with_stack=True, with_python=True) as prof:
            for _ in range(times):
                run()
        return prof.trace

    rounds = [[_undisturbed(run, _MOST_RUNS)[0] for run in (flawed, fixed)] for _ in range(1 if is_memory else _ROUNDS)]
    before, after = (float(median(times)) for times in zip(*rounds, strict=True))
    times = 1 if is_memory else max(round(_RECORDED_NS / before), 1)
    _, trace = _undisturbed(partial(recorded, flawed, times), 1 if is_memory else _MOST_RUNS)
    if is_memory:
        before, after = (float(peak_bytes(one) or 0) for one in (trace, recorded(fixed)))
    finding = RULES[pair.rule](trace)
    bound = placed(trace, pair.rule, finding).share if finding else None
    return [pair.rule, pair.name, before, (before - after) / before, bound, is_memory]


def _line(one: Checked) -> str:
    bound = "no finding" if one.bound is None else f"{one.bound:.1%}"
    before = f"{one.before / 1e6:8.2f} {'MB' if one.is_memory else 'ms'}"
    verdict = "" if one.holds else "  does not hold"
    return f"{one.rule:<22} {one.name:<30} {before} {one.gain:7.1%} {bound:>10}{verdict}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.bounds", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), metavar="RULE")
    chosen = parser.parse_args(arguments)
    failed = 0
    print(f"{'rule':<22} {'program':<30} {'before':>11} {'gain':>7} {'bound':>10}")
    for is_memory, pairs in ((False, PAIRS), (True, OF_MEMORY)):
        for number, pair in enumerate(pairs):
            if chosen.only and pair.rule not in chosen.only:
                continue
            try:
                one = Checked(*child.call("benchmarks.bounds:check", number, is_memory))
            except RuntimeError as error:
                print(pair.rule, pair.name, str(error)[-200:], file=sys.stderr)
                failed += 1
                continue
            failed += not one.holds
            print(_line(one), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
