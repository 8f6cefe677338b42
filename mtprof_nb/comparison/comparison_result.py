"""`Comparison`: the result of `compare`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from math import nan
from typing import TYPE_CHECKING, Any

from mtprof_nb.comparison.alternation import Alternated
from mtprof_nb.comparison.exact_changes import Change
from mtprof_nb.comparison.findings import Findings
from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.verdicts import Verdict
from mtprof_nb.model.trace import Trace
from mtprof_nb.results.text_table import data_frame

if TYPE_CHECKING:
    import pandas as pd


class Comparison:
    """How program b differs from program a, and whether it is faster."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    @property
    def verdict(self) -> Verdict:
        """The verdict on a call of the functions; of recordings, on the median step, or without steps the wall time."""
        return self._findings.verdict

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes that need no statistics: figures, ops, kernels, lines, shapes and types."""
        return self._findings.changes

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Times of both sides: the whole, steps, phases, lines, ops and kernels."""
        return self._findings.differences

    @property
    def notes(self) -> tuple[str, ...]:
        """Differences between the recordings themselves, and what is not compared because of them."""
        return self._findings.notes

    @property
    def labels(self) -> tuple[str, str]:
        """Names of a and b."""
        return self._findings.sides.a.label, self._findings.sides.b.label

    @property
    def traces(self) -> tuple[tuple[Trace, ...], tuple[Trace, ...]]:
        """The recordings of a and of b."""
        return self._findings.sides.a.runs, self._findings.sides.b.runs

    @property
    def alternated(self) -> Alternated | None:
        """The measured times of two functions; None for recordings."""
        return self._findings.alternated

    def to_dataframe(self) -> pd.DataFrame:
        """`differences` as a pandas DataFrame, with a column for each field, and those of the verdict. Needs pandas."""
        return data_frame([_record(row) for row in self.differences])

    def to_markdown(self, limit: int | None = None) -> str:
        """Verdict and tables as Markdown, with at most `limit` rows of each kind."""
        from mtprof_nb.views.comparison import comparison_page

        return comparison_page.markdown(self._findings, limit)

    def show(self, limit: int | None = None) -> None:
        """Show verdict and tables, with at most `limit` rows of each kind: below the cell, or as text in a terminal."""
        from mtprof_nb.views.comparison import comparison_page
        from mtprof_nb.views.frontend import running_shell

        text = comparison_page.text(self._findings, limit)
        if not hasattr(running_shell(), "kernel"):
            sys.stdout.write(f"{text}\n")
            return
        from IPython.display import display

        display({"text/plain": text, "text/html": comparison_page.html(self._findings, limit)}, raw=True)

    def __repr__(self) -> str:
        from mtprof_nb.views.comparison import comparison_page

        return comparison_page.text(self._findings)

    def _repr_html_(self) -> str:
        from mtprof_nb.views.comparison import comparison_page

        return comparison_page.html(self._findings)


def _record(row: Difference) -> dict[str, Any]:
    verdict = row.verdict
    values = {name: value for name, value in asdict(row).items() if name != "verdict"}
    tested = {name: getattr(verdict, name, None) for name in ("low", "high", "p")}
    numbers = values | tested | {"delta_ns": row.delta_ns, "ratio": row.ratio}
    # pandas makes a column of None one of objects.
    return {name: nan if value is None else value for name, value in numbers.items()} | {
        "verdict": verdict.answer if verdict else "",
        "why": verdict.why if verdict else "",
    }
