"""The strip above the tabs of a comparison: the verdict, and the figures of both sides."""

from __future__ import annotations

from mtprof_nb.analysis import units
from mtprof_nb.comparison.compared import Compared
from mtprof_nb.views.comparison.comparison_tables import change_cells, headline, labels, verdict_sentence
from mtprof_nb.views.strip import Figure, Strip


def comparison_strip(compared: Compared) -> Strip:
    """The verdict as the sentence of the strip, and figures with the value of each side."""
    a, b = labels(compared)
    return Strip(
        title=f"{b} against {a}",
        figures=tuple(_figures(compared)),
        phases=(),
        whole="",
        sentence=verdict_sentence(compared),
        devices=(),
        notes=(),
    )


def with_verdict(strip: Strip, compared: Compared) -> Strip:
    """The strip of a profile, with the verdict of its comparison with another one."""
    sentence = " ".join(filter(None, (f"{headline(compared)}.", strip.sentence)))
    return Strip(**{**vars(strip), "sentence": sentence})


def _figures(compared: Compared) -> list[Figure]:
    first = compared.differences[0]
    times = [units.duration(ns) for ns in (first.a_ns, first.b_ns) if ns is not None]
    figures = [Figure(first.name, " → ".join(times), f"{first.name} of both sides")]
    for change in compared.changes:
        if change.kind == "figure":
            name, a, b, percent = change_cells(change)
            figures.append(Figure(name, f"{a} → {b}", f"{name} of both sides: {percent}"))
    return figures
