"""`Advice`: the findings of a recording, as a list, as text and as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, overload

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.model.trace import Trace
from mtprof_nb.results.text_table import data_frame

if TYPE_CHECKING:
    import pandas as pd

_NOTHING = "no finding: no rule is sure of anything above 5 % of the time or of the peak"


class Advice(Sequence[Finding]):
    """The findings of a trace, the best first; at most five."""

    def __init__(self, trace: Trace) -> None:
        self._findings = advise(trace)

    def __len__(self) -> int:
        return len(self._findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self._findings[index]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self._findings)) or _NOTHING

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row a finding and a column for each field of `Finding`. Needs pandas."""
        rows = [asdict(finding) | {"line": finding.line} for finding in self._findings]
        return data_frame(rows, columns=[part.name for part in fields(Finding)])
