"""`mtprof compare`: how a recording differs from another one, and a guard against regressions."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtprof_nb.cell.options import positive
from mtprof_nb.cli.printing import print_to
from mtprof_nb.errors import MtprofError

if TYPE_CHECKING:
    from mtprof_nb.comparing import Comparison

#: Exit status if a limit is exceeded.
OVER_LIMIT = 3
#: Figures that a limit can be set for, by the names of their changes.
_FIGURES = {"ops": "ops", "allocated": "allocated", "peak": "peak memory"}
_HELP = (
    "fail if AFTER takes over 10%% more time for certain. `ops=10%%`, `allocated=10%%` and `peak=10%%` limit figures, "
    "which need no statistics. May be given several times"
)


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    text = "show what changed between two recordings, as tables in Markdown"
    after = f"Exit status: 0, or {OVER_LIMIT} if a limit of --fail-over is exceeded, or 1 if one cannot be checked."
    parser = subparsers.add_parser("compare", help=text, description=text, epilog=after)
    parser.add_argument("before", metavar="BEFORE", help="a file, a folder or a pattern")
    parser.add_argument("after", metavar="AFTER", help="the same for the recording that is compared with it")
    parser.add_argument(
        "--runs", action="store_true", help="each file of a folder or pattern is a run, not a process of one run"
    )
    parser.add_argument("--fail-over", action="append", default=[], type=_limit, metavar="10%", help=_HELP)
    parser.add_argument(
        "--matters", type=_share, default=0.05, metavar="5%", help="the least change of time that matters"
    )
    parser.add_argument("-l", "--limit", type=positive, metavar="N", help="show at most N rows of each kind")
    parser.add_argument("-H", "--html", metavar="PAGE", type=Path, help="also write the comparison as one HTML file")
    parser.set_defaults(command=_compare, parser=parser)


def _compare(given: argparse.Namespace) -> int:
    from mtprof_nb.comparing import compare
    from mtprof_nb.loading.chosen_files import chosen_files

    sides = [list(chosen_files(side)) if given.runs else side for side in (given.before, given.after)]
    names = (given.before, given.after) if given.before != given.after else None
    comparison = compare(*sides, matters=given.matters, names=names)
    print_to(sys.stdout, comparison.to_markdown(given.limit).removesuffix("\n"))
    if given.html is not None:
        comparison.export_html(given.html, given.limit)
    failures = over_limits(comparison, dict(given.fail_over))
    for failure in failures:
        print(f"{given.parser.prog}: {failure}", file=sys.stderr)  # noqa: T201
    return OVER_LIMIT if failures else 0


def over_limits(comparison: Comparison, limits: dict[str, float]) -> list[str]:
    """A line for each limit that is exceeded: of the time, if the verdict is "slower", or of a figure.

    `MtprofError` if a figure with a limit is not known on both sides.
    """
    from mtprof_nb.comparison.exact_changes import known_figures

    known = known_figures(comparison.compared.sides)
    if unknown := [name for name in limits if name in _FIGURES and _FIGURES[name] not in known]:
        msg = (
            f"the limit of {' and of '.join(unknown)} cannot be checked, because a recording lacks it: "
            "record both sides with the same hook, and with --profile-memory for bytes"
        )
        raise MtprofError(msg)
    changes = {change.name: (change.a, change.b) for change in comparison.changes if change.kind == "figure"}
    values = {name: changes[title] for name, title in _FIGURES.items() if title in changes}
    ratios = {
        name: b / a if a else math.inf
        for name, (a, b) in values.items()
        if isinstance(a, float) and isinstance(b, float)
    }
    if comparison.verdict.answer == "slower" and comparison.verdict.ratio is not None:
        ratios["time"] = comparison.verdict.ratio
    return [
        f"{name} grew {_growth(ratios[name])}, which is over the limit of {100 * limit:g} %"
        for name, limit in limits.items()
        if name in ratios and ratios[name] > 1 + limit
    ]


def _growth(ratio: float) -> str:
    return "from nothing" if math.isinf(ratio) else f"by {100 * (ratio - 1):.1f} %"


def _limit(text: str) -> tuple[str, float]:
    """`10%` as ("time", 0.1), `ops=5%` as ("ops", 0.05)."""
    name, equals, share = text.rpartition("=")
    if equals and name not in (*_FIGURES, "time"):
        msg = f"unknown figure {name!r}: use time, {', '.join(_FIGURES)}"
        raise argparse.ArgumentTypeError(msg)
    return name or "time", _share(share)


def _share(text: str) -> float:
    """`10%` as 0.1."""
    number = text.removesuffix("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share < float("inf"):
        msg = f"{text!r} is not a percentage: write it as 10%"
        raise argparse.ArgumentTypeError(msg)
    return share
