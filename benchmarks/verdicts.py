"""`python -m benchmarks.verdicts`: how often a comparison is right, on programs whose difference is known.

Functions in turns: 20 steps of a program against 20, 21, 22 and 26 steps of it. Recordings: of one program, each in a
process of its own; every verdict of a difference is wrong. The tables are written into docs/comparing.md.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child, report
from benchmarks.programs import PROGRAMS

STEPS = 20
#: Steps of the other function, and how much more that is.
CHANGES = {20: "none", 21: "+5 %", 22: "+10 %", 26: "+30 %"}
RECORDED_STEPS = 30
ANSWERS = ("faster", "slower", "no difference that matters", "cannot tell")
_PROGRAMS = {program.name: program for program in PROGRAMS[:3]}
_DOCS = child.ROOT / "docs" / "comparing.md"
_RESULTS = child.ROOT / "build" / "verdicts.json"
_BEGIN, _END = "<!-- verdicts -->", "<!-- end of verdicts -->"


def in_turns(program: str, steps: int, seconds: float) -> dict[str, Any]:
    """Times of the standard number of steps of a program and of `steps`, each with a model of its own."""
    from mtprof_nb.comparison.alternation import Alternation

    a, b = (_PROGRAMS[program].prepare(count) for count in (STEPS, steps))
    found = Alternation(a, b, seconds=seconds).run()
    return {"a_ns": found.a_ns, "b_ns": found.b_ns}


def recorded() -> dict[str, list[int]]:
    """The steps of one recording of each program, in nanoseconds."""
    import mtprof_nb
    from mtprof_nb.comparison.differences import step_lengths

    found = {}
    for program in _PROGRAMS.values():
        step = program.prepare(1)
        with mtprof_nb.profile() as prof:
            for number in range(RECORDED_STEPS):
                if number:
                    prof.step()
                step()
        found[program.name] = step_lengths(prof.trace)
    return found


def measure(same: int, changed: int, recordings: int, seconds: float, into: Path) -> None:
    """Add comparisons and recordings to the results, in random order; an interrupt leaves those that are done."""
    times = {steps: same if steps == STEPS else changed for steps in CHANGES}
    tasks = [(program, steps) for program in _PROGRAMS for steps, count in times.items() for _ in range(count)]
    todo: list[tuple[str, int] | None] = [*tasks, *[None] * recordings]
    random.shuffle(todo)
    for number, task in enumerate(todo, 1):
        results = _read(into)
        if task is None:
            results["recordings"].append(child.call("benchmarks.verdicts:recorded"))
        else:
            program, steps = task
            found = child.call("benchmarks.verdicts:in_turns", program, steps, seconds)
            results["turns"].append({"program": program, "steps": steps, "seconds": seconds, **found})
        into.parent.mkdir(parents=True, exist_ok=True)
        into.write_text(json.dumps(results))
        print(f"{number} of {len(todo)}", file=sys.stderr, flush=True)


def _read(path: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(path.read_text()) if path.exists() else {"turns": [], "recordings": []}
    return found


def tables(results: dict[str, list[Any]]) -> str:
    """The tables of the documentation as Markdown."""
    where = report.machine()
    machine = f"{where['processor']}, {where['cores']} cores shared with other work, torch {where['torch']}"
    measured = f"Measured on {machine}, {where['date']}."
    parts = [measured, _turns_table(results["turns"]), _recordings_table(results["recordings"])]
    return "\n\n".join(parts)


def _turns_table(turns: list[Any]) -> str:
    head = ["more work in b", "program", "comparisons", *ANSWERS, "median ratio", "median width of the interval"]
    rows = []
    for steps, change in CHANGES.items():
        for program in _PROGRAMS:
            chosen = [turn for turn in turns if turn["steps"] == steps and turn["program"] == program]
            if chosen:
                rows.append([change, program, *_row_of_turns(chosen)])
        if together := [turn for turn in turns if turn["steps"] == steps]:
            rows.append([f"**{change}**", "**all**", *_row_of_turns(together)])
    return _markdown(head, rows)


def _row_of_turns(turns: list[Any]) -> list[str]:
    from mtprof_nb.comparison.verdicts import judged_pairs

    verdicts = [judged_pairs(turn["a_ns"], turn["b_ns"], 0.05) for turn in turns]
    counts = Counter(verdict.answer for verdict in verdicts)
    widths = [verdict.high - verdict.low for verdict in verdicts if verdict.high and verdict.low]
    ratio = np.median([verdict.ratio or 1.0 for verdict in verdicts])
    middle = f"{ratio:.3f}", f"{np.median(widths):.3f}"
    return [str(len(turns)), *(str(counts[answer]) for answer in ANSWERS), *middle]


def _recordings_table(recordings: list[Any]) -> str:
    head = [
        "recordings of one program",
        "program",
        "comparisons",
        "wrong",
        "in 95 of 100 they differ by",
        "at most",
    ]
    rows = [
        [title, program, *row]
        for program in _PROGRAMS
        for title, row in _rows_of_recordings([recording[program] for recording in recordings])
    ]
    return _markdown(head, rows)


def _rows_of_recordings(runs: list[list[int]]) -> Iterator[tuple[str, list[str]]]:
    from mtprof_nb.comparison.verdicts import Runs, judged_once, judged_runs

    times = np.array([np.median(run) for run in runs])
    pairs = list(combinations(range(len(runs)), 2))
    once = [judged_once(times[a], times[b], lambda a=a: runs[a], lambda b=b: runs[b]) for a, b in pairs]  # type: ignore[misc]
    yield "one of each", _row([verdict.answer for verdict in once], [times[b] / times[a] for a, b in pairs])
    for is_mixed, title in ((False, "five of each, one side after the other"), (True, "five of each, in random order")):
        groups = list(_groups(times, is_mixed))
        found = [judged_runs(Runs(a, b, is_mixed), 0.05) for a, b in groups]
        yield title, _row([verdict.answer for verdict in found], [np.median(b) / np.median(a) for a, b in groups])


def _groups(times: Any, is_mixed: bool) -> Iterator[tuple[Any, Any]]:
    """Ten recordings that follow each other, divided into two sides."""
    generator = np.random.default_rng(0)
    for first in range(len(times) - 9):
        order = generator.permutation(10) if is_mixed else np.arange(10)
        chosen = times[first : first + 10][order]
        yield chosen[:5], chosen[5:]


def _row(answers: list[str], ratios: Iterable[float]) -> list[str]:
    factors = np.exp(np.abs(np.log(list(ratios))))
    wrong = sum(answer in ("faster", "slower") for answer in answers)
    return [str(len(answers)), str(wrong), f"{np.percentile(factors, 95):.2f} times", f"{factors.max():.2f} times"]


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put_into(page: Path, text: str) -> None:
    """Replace the tables between the two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    page.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the tables of everything that was measured so far."""
    parser = argparse.ArgumentParser("python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--same", type=int, default=40, help="comparisons of each program with itself")
    parser.add_argument("--changed", type=int, default=15, help="comparisons of each program with each change")
    parser.add_argument("--recordings", type=int, default=60, help="recordings of each program")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long functions run in turns")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="file that results are added to")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/comparing.md")
    chosen = parser.parse_args(arguments)
    measure(chosen.same, chosen.changed, chosen.recordings, chosen.seconds, chosen.results)
    text = tables(_read(chosen.results))
    print(text)
    if chosen.docs:
        put_into(_DOCS, text)


if __name__ == "__main__":
    main()
