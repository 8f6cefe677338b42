"""`compare`: two recordings, several of each, or two functions that run in turns; and the `Comparison` it returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import nan
from typing import TYPE_CHECKING, Any

from mtprof_nb.advice.finding import Finding
from mtprof_nb.comparison.alternation import Alternated, Alternation
from mtprof_nb.comparison.checked_fix import CheckedFix, checked
from mtprof_nb.comparison.compared import Compared, of_functions, of_recordings
from mtprof_nb.comparison.exact_changes import Change
from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.sides import Side, Sides
from mtprof_nb.comparison.verdicts import Verdict
from mtprof_nb.errors import MtprofError, SessionError, collected_warnings
from mtprof_nb.loading.recordings import load
from mtprof_nb.model.trace import Trace
from mtprof_nb.profiler import active, profile
from mtprof_nb.tables.row_table import Tabular
from mtprof_nb.tables.table import Table, TableColumn
from mtprof_nb.views.progress_bar import progress_bar

if TYPE_CHECKING:
    from mtprof_nb.views.panel.widget import Panel

#: A recording for the explanation holds at most this many calls, and about as much time.
_RECORDED_CALLS, _RECORDED_NS = 10, 1_000_000_000
_NAMELESS = ("", "profile", "<lambda>")


class Comparison(Tabular):
    """How program b differs from program a, and whether it is faster."""

    def __init__(self, compared: Compared) -> None:
        #: All results, as the views read them.
        self.compared = compared

    @property
    def verdict(self) -> Verdict:
        """The verdict on a call of the functions; of recordings, on the median step, or without steps the wall time."""
        return self.compared.verdict

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes that need no statistics: figures, ops, kernels, lines, shapes and types."""
        return self.compared.changes

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Times of both sides: the whole, steps, phases, lines, ops and kernels."""
        return self.compared.differences

    @property
    def notes(self) -> tuple[str, ...]:
        """Differences between the recordings themselves, and what is not compared because of them."""
        return self.compared.notes

    @property
    def labels(self) -> tuple[str, str]:
        """Names of a and b."""
        return self.compared.sides.a.label, self.compared.sides.b.label

    @property
    def traces(self) -> tuple[tuple[Trace, ...], tuple[Trace, ...]]:
        """The recordings of a and of b."""
        return self.compared.sides.a.runs, self.compared.sides.b.runs

    @property
    def alternated(self) -> Alternated | None:
        """The measured times of two functions; None for recordings."""
        return self.compared.alternated

    def check(self, finding: Finding) -> CheckedFix:
        """How the fix of `finding` changed a to b: verdict, peaks of memory, and whether b still has the finding."""
        return checked(finding, self)

    def facts(self) -> Table:
        """`differences` as data: a column for each field, and those of the verdict."""
        records = [_record(row) for row in self.differences]
        return Table([TableColumn(name) for name in records[0]], [list(record.values()) for record in records])

    def to_markdown(self, limit: int | None = None) -> str:
        """Verdict and tables as Markdown, with at most `limit` rows of each kind."""
        from mtprof_nb.views.comparison import comparison_html

        return comparison_html.markdown(self.compared, limit)

    def export_html(self, path: str | os.PathLike[str], limit: int | None = None) -> None:
        """Write the comparison with all its tabs as one HTML file, which opens without a kernel and without a network.

        Where scripts are off, it shows tables with at most `limit` rows of each kind.
        """
        from mtprof_nb.views.page import html_page

        html_page.write(html_page.comparison_page(self.compared, limit), path)

    def show(self, limit: int | None = None) -> Panel | None:
        """Show the comparison below the cell, or in a terminal as text, with at most `limit` rows of each kind.

        In a notebook it is a panel: the verdict, the measured times, a table of differences, the changed lines of both
        versions side by side, and two timelines under one axis. The panel is returned, as from `show` of a profile.
        """
        from mtprof_nb.views.panel import show_comparison

        return show_comparison.show(self.compared, limit)

    def __repr__(self) -> str:
        from mtprof_nb.views.comparison import comparison_html

        return comparison_html.text(self.compared)

    def _ipython_display_(self) -> None:
        from mtprof_nb.views.panel import show_comparison

        show_comparison.show_value(self.compared)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The comparison as HTML, Markdown and text."""
        from mtprof_nb.views.comparison.comparison_html import comparison_bundle

        return comparison_bundle(self.compared)

    def _repr_html_(self) -> str:
        from mtprof_nb.views.comparison import comparison_html

        return comparison_html.html(self.compared)

    def _display_(self) -> Panel:
        """The panel as marimo displays it."""
        from mtprof_nb.views.panel import show_comparison

        return show_comparison.panel(self.compared)


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


def compare(
    a: Any,
    b: Any,
    *,
    repeat: int | None = None,
    seconds: float | None = None,
    matters: float = 0.05,
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Compare b with a: what changed, and whether b is faster or slower by an amount that matters.

    `a` and `b` are profiles, recordings, traces, files, or lists of these: several runs of each side. Or they are two
    functions without arguments: these run in turns, unprofiled, for about `seconds` (10), or `repeat` times each; then
    each is recorded once to explain the difference. An interrupt ends this early, with the times that there are.

    A difference of times below the share `matters` does not matter. `names` are the names of a and b in tables.

        >>> comparison = mtp.compare(prof, prof, names=("before", "after"))
        >>> comparison.verdict.answer, comparison.changes
        ('cannot tell', ())
    """
    _check(repeat, seconds, matters)
    if _is_function(a) and _is_function(b):
        return _compared_functions(a, b, repeat, seconds or 10.0, matters, names)
    if repeat is not None or seconds is not None:
        msg = "repeat and seconds are for two functions, and these are recordings: leave them out"
        raise TypeError(msg)
    a_label, b_label = names or _labels(a, b)
    return Comparison(of_recordings(Sides(Side(a_label, runs_of(a)), Side(b_label, runs_of(b)), matters)))


def _check(repeat: int | None, seconds: float | None, matters: float) -> None:
    for name, value in (("repeat", repeat), ("seconds", seconds), ("matters", matters)):
        if value is not None and value <= 0:
            msg = f"{name} must be above 0, got {value!r}"
            raise ValueError(msg)


def _is_function(given: Any) -> bool:
    # A profile is callable too: it is a decorator.
    return callable(given) and not isinstance(getattr(given, "trace", None), Trace)


def runs_of(given: Any) -> tuple[Trace, ...]:
    """The recordings of one side; `TypeError` for something else, `LoadError` for a file that cannot be read."""
    runs = tuple(_trace(one) for one in (given if isinstance(given, list | tuple) else [given]))
    if not runs:
        msg = "there is nothing to compare in an empty list: give at least one recording"
        raise ValueError(msg)
    return runs


def _trace(given: Any) -> Trace:
    if isinstance(given, Trace):
        return given
    if isinstance(given, str | os.PathLike):
        return load(given).trace
    trace = getattr(given, "trace", None)
    if isinstance(trace, Trace):
        return trace
    msg = f"cannot compare {given!r}: give two recordings, files or lists of these, or two functions"
    raise TypeError(msg)


def _labels(a: Any, b: Any) -> tuple[str, str]:
    """Names of both sides; "a" and "b" if they have none, or the same."""
    a_label, b_label = _label(a), _label(b)
    return (a_label, b_label) if a_label and b_label and a_label != b_label else ("a", "b")


def _label(given: Any) -> str:
    if isinstance(given, list | tuple):
        return f"{_label(given[0])} ({len(given)} runs)" if given and _label(given[0]) else ""
    if isinstance(given, str | os.PathLike):
        return os.path.basename(os.fsdecode(given)).partition(".")[0]  # noqa: PTH119 - of any text
    trace = given if isinstance(given, Trace) else getattr(given, "trace", None)
    label = trace.label if isinstance(trace, Trace) else getattr(given, "__name__", "")
    return "" if label in _NAMELESS else str(label)


def _compared_functions(
    a: Callable[[], Any],
    b: Callable[[], Any],
    repeat: int | None,
    seconds: float,
    matters: float,
    names: tuple[str, str] | None,
) -> Comparison:
    if (running := active()) is not None:
        msg = f"profiler {running.name!r} is recording, which slows down what is measured: compare after it has stopped"
        raise SessionError(msg)
    labels = names or _labels(a, b)
    alternation = Alternation(a, b, repeat, seconds)
    title = f"comparing {labels[0]} and {labels[1]}, about {max(alternation.seconds, 1):.0f} s"
    with progress_bar(title) as progress:
        alternated = alternation.run(progress)
    notes: list[str] = []
    runs = _recordings((a, b), labels, alternated, notes)
    sides = Sides(Side(labels[0], runs[:1]), Side(labels[1], runs[1:]), matters, steps_are_calls=True)
    return Comparison(of_functions(sides, alternated, notes))


def _recordings(
    functions: Sequence[Callable[[], Any]], labels: Sequence[str], alternated: Alternated, notes: list[str]
) -> tuple[Trace, ...]:
    """A recording of each function; none, and a note, after an interrupt or if one cannot be made."""
    if alternated.is_interrupted:
        return ()
    calls = max(1, min(_RECORDED_CALLS, int(_RECORDED_NS / max(*alternated.a_ns, *alternated.b_ns))))
    try:
        with collected_warnings(notes):
            return tuple(_recorded(function, label, calls) for function, label in zip(functions, labels, strict=True))
    except KeyboardInterrupt:
        notes.append("Interrupted before both functions were recorded: there is no explanation.")
    except MtprofError as error:
        notes.append(f"The functions could not be recorded, so there is no explanation: {error}.")
    return ()


def _recorded(function: Callable[[], Any], label: str, calls: int) -> Trace:
    with profile(record_shapes=True, profile_memory=True, with_stack=True, name=label) as prof:
        for call in range(calls):
            if call:
                prof.step()
            function()
    return prof.trace
