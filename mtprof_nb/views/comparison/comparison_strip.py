"""The strip above the tabs of a comparison: the verdict, and the figures of both sides."""

from __future__ import annotations

from mtprof_nb.analysis import units
from mtprof_nb.comparison.findings import Findings
from mtprof_nb.views.comparison.comparison_tables import change_cells, headline, labels, verdict_sentence
from mtprof_nb.views.strip import Figure, Strip


def comparison_strip(findings: Findings) -> Strip:
    """The verdict as the sentence of the strip, and figures with the value of each side."""
    a, b = labels(findings)
    return Strip(
        title=f"{b} against {a}",
        figures=tuple(_figures(findings)),
        phases=(),
        whole="",
        sentence=verdict_sentence(findings),
        devices=(),
        notes=(),
    )


def with_verdict(strip: Strip, findings: Findings) -> Strip:
    """The strip of a profile, with the verdict of its comparison with another one."""
    sentence = " ".join(filter(None, (f"{headline(findings)}.", strip.sentence)))
    return Strip(**{**vars(strip), "sentence": sentence})


def _figures(findings: Findings) -> list[Figure]:
    first = findings.differences[0]
    times = [units.duration(ns) for ns in (first.a_ns, first.b_ns) if ns is not None]
    found = [Figure(first.name, " → ".join(times), f"{first.name} of both sides")]
    for change in findings.changes:
        if change.kind == "figure":
            name, a, b, percent = change_cells(change)
            found.append(Figure(name, f"{a} → {b}", f"{name} of both sides: {percent}"))
    return found
