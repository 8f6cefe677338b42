"""`python -m benchmarks`: measure, print the table, write the JSON."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import child, report
from benchmarks.figure import Figure, LeftOutError
from benchmarks.sampling import FULL, QUICK, TINY

GROUPS = (
    *("recording", "marks", "processing", "memory", "exports", "mindtorch", "growth", "panel", "imports", "files"),
    *("native", "ranks", "python_time", "compiled"),
)
_SCALES = {"full": FULL, "quick": QUICK, "tiny": TINY}
_JSON = child.ROOT / "build" / "benchmarks.json"
_README = Path(__file__).parent / "README.md"


def measure(group: str, scale: str) -> list[dict[str, Any]] | str:
    """The figures of one group, as plain values; or why it is left out."""
    try:
        figures = import_module(f"benchmarks.{group}").figures(_SCALES[scale])
    except LeftOutError as reason:
        return str(reason)
    return [figure.as_json() for figure in figures]


def measured(groups: Sequence[str], scale: str) -> tuple[list[Figure], list[str]]:
    """The figures of all groups, each in a process of its own, and what the failed ones said."""
    found: list[Figure] = []
    failures = []
    for group in groups:
        began = time.monotonic()
        try:
            answer = child.call("benchmarks.__main__:measure", group, scale)
            said = f"left out: {answer}," if isinstance(answer, str) else "done"
            found += [] if isinstance(answer, str) else map(Figure.from_json, answer)
        except RuntimeError as error:
            failures.append(str(error))
            said = "FAILED"
        print(f"{group:<12} {said} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found, failures


def main(arguments: list[str] | None = None) -> int:
    """1 where a group could not be measured; a bound that does not hold is a result, not a failure."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four minutes instead of fifteen, with wider spread")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--json", type=Path, default=_JSON, help="where to write the figures")
    parser.add_argument("--readme", action="store_true", help="put the table into benchmarks/README.md as well")
    chosen = parser.parse_args(arguments)
    figures, failures = measured(chosen.only, "quick" if chosen.quick else "full")
    where = report.machine()
    if figures:
        print(report.text(figures))
        report.write_json(figures, where, chosen.json)
    if chosen.readme:
        report.put_into_readme(figures, where, _README)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
