"""`Comparison`: the result of `compare`."""

from __future__ import annotations

from dataclasses import asdict
from math import nan
from os import PathLike
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

    from mtprof_nb.views.panel.widget import Panel


class Comparison:
    """How program b differs from program a, and whether it is faster."""

    def __init__(self, findings: Findings) -> None:
        #: All that was found, as the views read it.
        self.findings = findings

    @property
    def verdict(self) -> Verdict:
        """The verdict on a call of the functions; of recordings, on the median step, or without steps the wall time."""
        return self.findings.verdict

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes that need no statistics: figures, ops, kernels, lines, shapes and types."""
        return self.findings.changes

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Times of both sides: the whole, steps, phases, lines, ops and kernels."""
        return self.findings.differences

    @property
    def notes(self) -> tuple[str, ...]:
        """Differences between the recordings themselves, and what is not compared because of them."""
        return self.findings.notes

    @property
    def labels(self) -> tuple[str, str]:
        """Names of a and b."""
        return self.findings.sides.a.label, self.findings.sides.b.label

    @property
    def traces(self) -> tuple[tuple[Trace, ...], tuple[Trace, ...]]:
        """The recordings of a and of b."""
        return self.findings.sides.a.runs, self.findings.sides.b.runs

    @property
    def alternated(self) -> Alternated | None:
        """The measured times of two functions; None for recordings."""
        return self.findings.alternated

    def to_dataframe(self) -> pd.DataFrame:
        """`differences` as a pandas DataFrame, with a column for each field, and those of the verdict. Needs pandas."""
        return data_frame([_record(row) for row in self.differences])

    def to_markdown(self, limit: int | None = None) -> str:
        """Verdict and tables as Markdown, with at most `limit` rows of each kind."""
        from mtprof_nb.views.comparison import comparison_text

        return comparison_text.markdown(self.findings, limit)

    def export_html(self, path: str | PathLike[str], limit: int | None = None) -> None:
        """Write the comparison with all its tabs as one HTML file, which opens without a kernel and without a network.

        Where scripts are off, it shows tables with at most `limit` rows of each kind.
        """
        from mtprof_nb.views.page import html_page

        html_page.write(html_page.comparison_page(self.findings, limit), path)

    def show(self, limit: int | None = None) -> Panel | None:
        """Show the comparison below the cell, or in a terminal as text, with at most `limit` rows of each kind.

        In a notebook it is a panel: the verdict, the measured times, a table of differences, the changed lines of both
        versions side by side, and two timelines under one axis. The panel is returned, as from `show` of a profile.
        """
        from mtprof_nb.views.panel import show_comparison

        return show_comparison.show(self.findings, limit)

    def __repr__(self) -> str:
        from mtprof_nb.views.comparison import comparison_text

        return comparison_text.text(self.findings)

    def _ipython_display_(self) -> None:
        from mtprof_nb.views.panel import show_comparison

        show_comparison.show_value(self.findings)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The comparison as HTML, Markdown and text."""
        from mtprof_nb.views.comparison.comparison_html import comparison_bundle

        return comparison_bundle(self.findings)

    def _display_(self) -> Panel:
        """The panel as marimo displays it."""
        from mtprof_nb.views.panel import show_comparison

        return show_comparison.panel(self.findings)


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
