"""`CheckedFix`: what the fix of a finding gave, measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.analysis import units
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.model.trace import Trace


@dataclass(frozen=True)
class CheckedFix:
    """A finding, and how the program after its fix differs from the one before."""

    finding: Finding
    #: The `Comparison` of both programs.
    comparison: Any
    #: Whether the rule finds nothing any more; None if the program after the fix was not recorded.
    is_gone: bool | None
    #: The peaks of memory before and after; None if they were not recorded.
    before_bytes: int | None
    after_bytes: int | None

    @property
    def verdict(self) -> Any:
        """Whether the program after the fix is faster: the `Verdict` of the comparison."""
        return self.comparison.verdict

    def __str__(self) -> str:
        gone = {True: "not found any more", False: "still found", None: "not known whether still found"}[self.is_gone]
        parts = [f"{self.finding.title}: {gone}", f"time: {self.verdict}"]
        if self.before_bytes is not None and self.after_bytes is not None:
            parts.append(f"peak of memory {units.nbytes(self.before_bytes)} -> {units.nbytes(self.after_bytes)}")
        return shown("; ".join(parts), LONGEST_SENTENCE)


def checked(finding: Finding, comparison: Any) -> CheckedFix:
    """`finding` with the measurements of a `Comparison` of the programs before and after its fix."""
    before, after = comparison.traces
    rules = {one.rule for trace in after for one in advise(trace)}
    return CheckedFix(
        finding,
        comparison,
        finding.rule not in rules if after else None,
        _peak(before),
        _peak(after),
    )


def _peak(traces: tuple[Trace, ...]) -> int | None:
    peaks = [peak for trace in traces if (peak := peak_bytes(trace)) is not None]
    return max(peaks, default=None)
