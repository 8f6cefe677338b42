"""The tables of `benchmarks.verdicts`, as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report

#: Parts of a program that the first function runs.
PARTS = 20
#: Parts that the second one runs, and how much more that is.
CHANGES = {20: "none", 21: "+5 %", 22: "+10 %", 26: "+30 %"}
_MACHINES = {False: "alone", True: "beside other work"}
_BEGIN, _END = "<!-- verdicts -->", "<!-- end of verdicts -->"

Turns = list[dict[str, Any]]


def tables(results: dict[str, list[Any]]) -> str:
    """The tables of the documentation."""
    turns, recordings = results["turns"], results["recordings"]
    same = [turn for turn in turns if turn["parts"] == PARTS]
    where = report.machine()
    measured = (
        f"Measured on {where['processor']}, {where['cores']} cores, torch {where['torch']}, {where['date']}; "
        f"{_seconds(turns)} s a comparison."
    )
    return "\n\n".join([measured, _same(same), _bound(same), _changed(turns), _recordings(recordings)])


def _seconds(turns: Turns) -> str:
    return ", ".join(f"{seconds:g}" for seconds in sorted({turn["seconds"] for turn in turns}))


def _same(turns: Turns) -> str:
    """A against A: every verdict of a difference is wrong."""
    head = ["a function against itself", "program", "comparisons", "**wrong**", "no difference", "cannot tell", "width"]
    rows = []
    for is_beside, machine in _MACHINES.items():
        chosen = [turn for turn in turns if turn["is_beside"] == is_beside]
        rows += [
            [machine, program, *_same_cells([turn for turn in chosen if turn["program"] == program])]
            for program in {turn["program"] for turn in chosen}
        ]
    return _markdown(head, [*sorted(rows), ["**all**", "", *_same_cells(turns)]])


def _same_cells(turns: Turns) -> list[str]:
    verdicts = _verdicts(turns)
    counts = Counter(verdict.answer for verdict in verdicts)
    wrong = counts["faster"] + counts["slower"]
    numbers = (len(turns), wrong, counts["no difference that matters"], counts["cannot tell"])
    return [*map(str, numbers), _width(verdicts)]


def _bound(turns: Turns) -> str:
    wrong = sum(verdict.answer in ("faster", "slower") for verdict in _verdicts(turns))
    most = 100 * largest_share(wrong, len(turns))
    return f"{wrong} of {len(turns)} are wrong: with 95 % confidence, at most {most:.1f} of 100 comparisons are."


def largest_share(found: int, of: int) -> float:
    """The largest share that explains so few cases: above it, as few have a chance below 5 %."""
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        chance = sum(math.comb(of, cases) * share**cases * (1 - share) ** (of - cases) for cases in range(found + 1))
        low, high = (share, high) if chance > 0.05 else (low, share)
    return high


def _changed(turns: Turns) -> str:
    """A against more work: *slower* is right."""
    head = [
        "more work in b",
        "machine",
        "comparisons",
        "found",
        "faster",
        "no difference",
        "cannot tell",
        "ratio",
        "width",
    ]
    rows = []
    for parts, change in list(CHANGES.items())[1:]:
        for is_beside, machine in _MACHINES.items():
            chosen = [turn for turn in turns if turn["parts"] == parts and turn["is_beside"] == is_beside]
            if chosen:
                rows.append([change, machine, *_changed_cells(chosen)])
    return _markdown(head, rows)


def _changed_cells(turns: Turns) -> list[str]:
    verdicts = _verdicts(turns)
    counts = Counter(verdict.answer for verdict in verdicts)
    answers = ("slower", "faster", "no difference that matters", "cannot tell")
    ratio = np.median([verdict.ratio for verdict in verdicts])
    return [str(len(turns)), *(str(counts[answer]) for answer in answers), f"{ratio:.3f}", _width(verdicts)]


def _verdicts(turns: Turns) -> list[Any]:
    from mtprof_nb.comparison.verdicts import judged_pairs

    return [judged_pairs(turn["a_ns"], turn["b_ns"], 0.05) for turn in turns]


def _width(verdicts: list[Any]) -> str:
    """The median width of the interval of the ratio."""
    return f"{np.median([verdict.high - verdict.low for verdict in verdicts if verdict.high and verdict.low]):.3f}"


def _recordings(recordings: list[Any]) -> str:
    head = ["recordings of one program", "machine", "comparisons", "wrong", "in 95 of 100 they differ by", "at most"]
    rows = []
    for is_beside, machine in _MACHINES.items():
        chosen = [recording["steps"] for recording in recordings if recording["is_beside"] == is_beside]
        found: dict[str, list[list[Any]]] = {}
        for program in chosen[0] if chosen else ():
            for title, answers, ratios in _compared([recording[program] for recording in chosen]):
                both = found.setdefault(title, [[], []])
                both[0] += answers
                both[1] += ratios
        rows += [[title, machine, *_row(*both)] for title, both in found.items() if both[0]]
    return _markdown(head, sorted(rows, key=lambda row: row[0], reverse=True))


def _compared(runs: list[list[int]]) -> Iterator[tuple[str, list[str], list[float]]]:
    """Answers and ratios of comparisons of one recording with another one, and of five with five."""
    from mtprof_nb.comparison.verdicts import judged_once, judged_runs

    times = np.array([np.median(run) for run in runs])
    pairs = list(combinations(range(len(runs)), 2))
    once = [judged_once(times[a], times[b], lambda a=a: runs[a], lambda b=b: runs[b]) for a, b in pairs]  # type: ignore[misc]
    yield "one of each", [verdict.answer for verdict in once], [times[b] / times[a] for a, b in pairs]
    for is_mixed, title in ((False, "five of each, one side after the other"), (True, "five of each, in random order")):
        groups = list(_groups(times, is_mixed))
        answers = [judged_runs(a, b, 0.05, is_mixed).answer for a, b in groups]
        yield title, answers, [np.median(b) / np.median(a) for a, b in groups]


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
