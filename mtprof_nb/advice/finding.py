"""`Finding`: one thing to change in a recorded program."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

from mtprof_nb.analysis import units
from mtprof_nb.errors import LONGEST_SENTENCE, legible_lines, shown
from mtprof_nb.model.trace import SourceLine

#: How sure a finding is: the recording proves it and the fix cannot make the program slower, or one of both is open.
CERTAIN, LIKELY = "certain", "likely"


@dataclass(frozen=True)
class Finding:
    """One thing to change. A rule fills the first fields; `advise` adds the others."""

    #: The problem, in plain words.
    title: str
    #: Numbers of this recording.
    evidence: str
    #: A few lines of code.
    fix: str
    #: The source line to change; None if none is known.
    line: SourceLine | None = None
    #: Upper bound of the time that the fix can save; 0 for a finding about memory.
    at_most_ns: int = 0
    #: The time of what was found, by which findings are chosen and sorted, where the bound contains more; else 0.
    found_ns: int = 0
    #: Upper bound of the bytes by which the fix can lower the peak; 0 for a finding about time.
    at_most_bytes: int = 0
    #: `certain` or `likely`.
    certainty: str = LIKELY
    #: Name of the rule.
    rule: str = ""
    #: The line as the panel shows it: `Cell [3]:4`; "" without a line.
    where: str = ""
    #: The upper bound as a share of the recorded time, or of the peak.
    share: float = 0.0

    @property
    def bound(self) -> str:
        """The upper bound in words: `at most 12.0 ms (34 % of the time)`."""
        if self.at_most_ns:
            return f"at most {units.duration(self.at_most_ns)} ({self.share:.0%} of the time)".replace("%", " %")
        return f"at most {units.nbytes(self.at_most_bytes)} ({self.share:.0%} of the peak)".replace("%", " %")

    @property
    def gain(self) -> str:
        """How sure the finding is, and its upper bound, as a sentence."""
        return f"This is {self.certainty}; a fix can save {self.bound}."

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        sentence = shown(f"{self.title}{where}: {self.evidence} {self.gain}", LONGEST_SENTENCE)
        return f"{sentence}\n{legible_lines(indent(self.fix, '    '))}"
