"""The steps without scripts: their median and spread, and what takes longer in the slow ones."""

from __future__ import annotations

from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.step_table import Steps
from mtprof_nb.views.escaped_text import escaped, shown


def steps_text(trace: Trace) -> list[str]:
    """A line about all steps and one for each slow step; empty without marked steps, and for several processes."""
    steps = Steps(trace)
    return ["", *map(shown, repr(steps).splitlines())] if len(steps) else []


def steps_html(trace: Trace) -> str:
    """These lines as HTML; "" without marked steps."""
    return "".join(f"<div>{escaped(line)}</div>" for line in steps_text(trace) if line)
