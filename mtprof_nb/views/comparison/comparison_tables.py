"""Headline and tables of a comparison, for every form in which it is shown."""

from __future__ import annotations

from collections.abc import Sequence

from mtprof_nb.analysis import units
from mtprof_nb.comparison.compared import Compared
from mtprof_nb.comparison.exact_changes import Change
from mtprof_nb.comparison.joined_rows import Difference
from mtprof_nb.comparison.verdicts import SAME, Verdict
from mtprof_nb.errors import shown
from mtprof_nb.tables.table import MISSING, Table, TableColumn, table_of

_CHANGES = 12
#: Rows of each level that are shown at most; the others are folded.
_ROWS = {"line": 8, "op": 10, "kernel": 10}
_LEVELS = {"phase": "phase", "line": "line", "op": "op", "kernel": "kernel"}


def headline(compared: Compared) -> str:
    """The verdict in one line: `after against before: faster, 0.78 × the time`."""
    a, b = labels(compared)
    return f"{b} against {a}: {verdict_sentence(compared)}"


def verdict_sentence(compared: Compared) -> str:
    """The verdict and the ratio: `faster, 0.78 × the time (0.75 to 0.81)`."""
    times = _times(compared.verdict)
    return f"{compared.verdict.answer}{f', {times}' if times else ''}"


def explanation(compared: Compared) -> list[str]:
    """The reason of the verdict, how the times were taken, and notes about the recordings, a line each."""
    lines = (*_measured(compared), *_about_ratio(compared), *map(shown, compared.notes))
    return [units.sentence(compared.verdict.why), *lines]


def _about_ratio(compared: Compared) -> list[str]:
    """How ratios were estimated, where they are not the quotient of the times in the row."""
    if compared.verdict.p is None:
        return []
    unit = "runs" if compared.alternated is None else "blocks"
    return [
        f"Times are medians of the {unit}. A ratio is the median of the ratios of pairs of {unit}, "
        "not the quotient of the times."
    ]


def tables(compared: Compared, limit: int | None = None) -> list[Table]:
    """The changes that need no statistics, then the times; of each kind at most `limit` rows."""
    both = _changes_table(compared, limit), _times_table(compared, limit)
    return [table for table in both if table.rows]


def _times(verdict: Verdict) -> str:
    if verdict.ratio is None:
        return ""
    interval = "" if verdict.low is None else f" ({interval_text(verdict)})"
    return f"{units.ratio(verdict.ratio)} × the time{interval}"


def _measured(compared: Compared) -> list[str]:
    times = compared.alternated
    if times is None:
        return []
    names = [shown(side.label) for side in compared.sides.both]
    blocks = ", ".join(
        f"{name}: {units.plural(block.calls, 'call')} a block"
        for name, block in zip(names, (times.a_block, times.b_block), strict=True)
    )
    p = compared.verdict.p
    test = "" if p is None else f" Wilcoxon signed-rank test: p {'< 0.0001' if p < 0.0001 else f'= {p:.4f}'}."
    pairs = units.plural(len(times.a_ns), "pair")
    return [f"Measured unprofiled in {pairs} of blocks, in random order, in {times.seconds:.1f} s ({blocks}).{test}"]


def _changes_table(compared: Compared, limit: int | None) -> Table:
    (a, b), changes = labels(compared), compared.changes
    shown_changes = changes[: _CHANGES if limit is None else limit]
    left = len(changes) - len(shown_changes)
    columns = (
        TableColumn("name", "Changed, whatever the noise", "words"),
        TableColumn("a", a, "text"),
        TableColumn("b", b, "text"),
        TableColumn("change", "Change", "words"),
    )
    notes = (f"and {units.plural(left, 'more change')}",) if left > 0 else ()
    return Table(columns, list(map(change_cells, shown_changes)), notes)


def change_cells(change: Change) -> tuple[str, ...]:
    """Name, number on each side, and kind of a change."""
    a, b = (_value_text(change, value) for value in (change.a, change.b))
    return _name(change.kind, change.name, change.detail if change.kind != "figure" else ""), a, b, _kind_text(change)


def _name(kind: str, name: str, detail: str) -> str:
    prefix = "" if kind == "figure" else f"{kind} "
    return f"{prefix}{shown(name, 60)}{f' ({shown(detail, 60)})' if detail else ''}"


def _value_text(change: Change, value: float | str | None) -> str:
    if value is None:
        return MISSING
    if isinstance(value, str):
        return shown(value, 60)
    if change.kind == "figure" and change.detail in ("bytes", "flops"):
        return units.WRITERS[change.detail](round(value))
    return count_text(value)


def count_text(count: float) -> str:
    """A count. The mean over steps may have decimals."""
    return units.number(round(count)) if abs(count - round(count)) < 1e-9 else units.three_digits(count)


def _kind_text(change: Change) -> str:
    if change.change:
        return change.change
    if isinstance(change.a, float) and isinstance(change.b, float) and change.a:
        return percent_text(change.b / change.a - 1)
    return f"other {change.kind}" if change.kind in ("shapes", "types") else "changed"


def percent_text(share: float) -> str:
    """A signed percentage: `−33 %`; `−99.9 %` of what is nearly gone."""
    percent = 100 * share
    is_rest = -100 < percent < -99
    digits = f"{abs(percent):.0f}" if abs(percent) >= 9.5 and not is_rest else f"{min(abs(percent), 99.9):.1f}"
    return f"{units.MINUS if percent < 0 else '+'}{digits} %"


def labels(compared: Compared) -> tuple[str, str]:
    """Names of both sides, fit to be shown."""
    return shown(compared.sides.a.label, 40), shown(compared.sides.b.label, 40)


def time_columns(compared: Compared) -> list[TableColumn]:
    """Columns of the times of both sides."""
    a, b = labels(compared)
    return [
        TableColumn("a_ns", a, "time", f"time of {a}"),
        TableColumn("b_ns", b, "time", f"time of {b}"),
        TableColumn("delta_ns", "Δ", "change", "difference of the times"),
        TableColumn(
            "ratio", "Ratio", "ratio", f"time of {b} over that of {a}; of several blocks or runs, the median over pairs"
        ),
        TableColumn("interval", "Interval", "text", "confidence interval of the ratio"),
        TableColumn("verdict", "Verdict", "words", "what can be said about the times; the reason shows on hover"),
    ]


def _times_table(compared: Compared, limit: int | None) -> Table:
    def made(row: Difference) -> dict[str, str]:
        name = _name(_LEVELS.get(row.level, "figure"), row.name, row.detail)
        return {"name": name, "interval": interval_text(row.verdict), "verdict": verdict_text(row)}

    rows = _shown_rows(compared.differences, limit)
    left = len(compared.differences) - len(rows)
    notes = (f"and {units.plural(left, 'row')} with smaller differences",) if left > 0 else ()
    columns = (TableColumn("name", "Time", "words"), *time_columns(compared))
    return table_of(columns, rows, made, notes=notes)


def _shown_rows(differences: Sequence[Difference], limit: int | None) -> list[Difference]:
    """All rows of the whole, of steps and of phases; of the others the largest ones that are not small."""
    chosen = [row for row in differences if row.level not in _ROWS]
    for level, most in _ROWS.items():
        rows = [row for row in differences if row.level == level and not is_small(row)]
        chosen += rows[: most if limit is None else limit]
    return chosen


def is_small(row: Difference) -> bool:
    """Whether a row has too little of the time for its difference to matter."""
    verdict = row.verdict
    return verdict is not None and verdict.answer == SAME and verdict.ratio is None


def calls_text(row: Difference) -> str:
    """Calls of both sides: `440 → 21`, one number if they are equal, a dash if they are not known."""
    known = [MISSING if calls is None else count_text(calls) for calls in (row.a_calls, row.b_calls)]
    return " → ".join(dict.fromkeys(known))


def interval_text(verdict: Verdict | None) -> str:
    """The interval of a ratio, or a dash."""
    if verdict is None or verdict.low is None or verdict.high is None:
        return MISSING
    return f"{units.ratio(verdict.low)} to {units.ratio(verdict.high)}"


def verdict_text(row: Difference) -> str:
    """The answer of the verdict; "new" or "gone" for a row of one side."""
    return row.change if row.verdict is None else row.verdict.answer
