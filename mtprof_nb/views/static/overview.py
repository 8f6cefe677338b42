"""The overview without scripts: the sentence, what the program waited for, and the findings."""

from __future__ import annotations

from mtprof_nb.advice.causes.where_time_went import waiting, where_time_went
from mtprof_nb.analysis import units
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.advice_list import Advice
from mtprof_nb.tables.writers.as_html import escaped
from mtprof_nb.tables.writers.as_markdown import marked
from mtprof_nb.views.escaped_text import shown


def overview_html(trace: Trace) -> str:
    """The overview as HTML; "" without events."""
    sentence, waits = where_time_went(trace), _waits(trace)
    waited = f"<div>{escaped(waits)}</div>" if waits else ""
    if not sentence:
        return ""
    return f"<section><div><b>{escaped(sentence)}</b></div>{waited}{Advice(trace).html()}</section>"


def overview_text(trace: Trace) -> list[str]:
    """The overview as lines of text."""
    first = [shown(line) for line in (where_time_went(trace), _waits(trace)) if line]
    paragraphs = [line for text in Advice(trace).paragraphs() for line in ("", *text.splitlines())]
    return [*first, *paragraphs]


def findings_markdown(trace: Trace) -> list[str]:
    """The overview but for its sentence, as paragraphs of Markdown."""
    waits = _waits(trace)
    return [*([marked(waits)] if waits else []), *Advice(trace).markdown()]


def _waits(trace: Trace) -> str:
    """As "Waited for: DataLoader's next 12.0 ms, garbage collections 3.00 ms."; "" if it waited for nothing."""
    waits = ", ".join(f"{one.title} {units.duration(one.ns)}" for one in waiting(trace))
    return f"Waited for: {waits}." if waits else ""
