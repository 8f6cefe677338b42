"""`Advice`: the findings of a recording, as a list, as text and as a DataFrame."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.recording_notes import advice_notes
from mtprof_nb.errors import legible_lines
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.row_list import RowList
from mtprof_nb.tables.text_table import data_frame

if TYPE_CHECKING:
    import pandas as pd

_NOTHING = "no finding: no rule is sure of anything above 5 % of the time or of the peak"


class Advice(RowList[Finding]):
    """The findings of a trace, the best first; at most five."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(advise(trace))
        #: Sentences about the recording itself, such as that the profiler took most of the time between ops.
        self.notes: tuple[str, ...] = advice_notes(trace)

    def __repr__(self) -> str:
        return legible_lines("\n\n".join([*(map(str, self._rows) if self._rows else [_NOTHING]), *self.notes]))

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas DataFrame with one row a finding and a column for each field of `Finding`. Needs pandas."""
        rows = [asdict(finding) | {"line": finding.line} for finding in self._rows]
        return data_frame(rows, columns=[part.name for part in fields(Finding)])
