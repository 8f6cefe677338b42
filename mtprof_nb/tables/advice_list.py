"""`Advice`: the findings of a recording, in prose and as data."""

from __future__ import annotations

from dataclasses import fields

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.recording_notes import advice_notes
from mtprof_nb.errors import legible_lines
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.row_table import RowTable
from mtprof_nb.tables.table import Table, TableColumn, table_of
from mtprof_nb.tables.writers.as_html import escaped
from mtprof_nb.tables.writers.as_markdown import code_block, marked

_QUIET, _CODE = "opacity:0.7", "font-family:monospace;white-space:pre-wrap;margin:2px 0 2px 16px"

_COLUMNS = (
    TableColumn("title", "Finding", "words", "the problem"),
    TableColumn("where", "Line", "code", "the source line to change"),
    TableColumn("bound", "Gain", "words", "upper bound of what the fix can save"),
    TableColumn("certainty", "Certainty", "words"),
    TableColumn("evidence", "Evidence", "words", "numbers of this recording"),
)


class Advice(RowTable[Finding]):
    """The findings of a trace, the best first; at most five."""

    _nothing = "no finding: no rule is sure of anything above 5 % of the time or of the peak"
    _facts = tuple(part.name for part in fields(Finding))

    def __init__(self, trace: Trace) -> None:
        super().__init__(advise(trace))
        #: Sentences about the recording itself, such as that the profiler took most of the time between ops.
        self.notes: tuple[str, ...] = advice_notes(trace)

    def __repr__(self) -> str:
        return "\n\n".join([*([] if self else [self._nothing]), *self.paragraphs()])

    def content(self) -> Table:
        """A row for each finding, without its fix."""
        return table_of(_COLUMNS, self._rows, lambda row: {"where": row.where or None}, notes=self.notes)

    def paragraphs(self) -> list[str]:
        """The findings and the notes as texts."""
        return [legible_lines(str(one)) for one in (*self._rows, *self.notes)]

    def markdown(self) -> list[str]:
        """The findings and the notes as paragraphs of Markdown."""
        return [*map(_finding_markdown, self._rows), *map(marked, self.notes)]

    def html(self) -> str:
        """The findings and the notes as HTML that needs no script."""
        notes = (f"<div>{escaped(note)}</div>" for note in self.notes)
        return "".join((*map(_finding_html, self._rows), *notes))

    def _repr_html_(self) -> str:
        nothing = "" if self else f"<div>{escaped(self._nothing)}</div>"
        return f"{nothing}{self.html()}"


def _finding_markdown(finding: Finding) -> str:
    where = f" ({marked(finding.where)})" if finding.where else ""
    evidence = marked(f"{finding.evidence} {finding.gain}")
    return f"**{marked(finding.title)}**{where}: {evidence}\n\n{code_block(finding.fix)}"


def _finding_html(finding: Finding) -> str:
    where = f' <span style="{_QUIET}">{escaped(finding.where)}</span>' if finding.where else ""
    fix = "".join(f"<div>{escaped(line)}</div>" for line in finding.fix.splitlines())
    return (
        f'<div style="margin:4px 0"><b>{escaped(finding.title)}</b>{where}'
        f'<div>{escaped(finding.evidence)} <span style="{_QUIET}">{escaped(finding.gain)}</span></div>'
        f'<div style="{_CODE}">{fix}</div></div>'
    )
