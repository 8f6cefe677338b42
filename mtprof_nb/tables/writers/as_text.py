"""A table as aligned text."""

from __future__ import annotations

from mtprof_nb.errors import LONGEST_SENTENCE, shown
from mtprof_nb.tables.table import TEXTS, Table

_WIDEST, _SPACING = 60, "  "
#: A sentence in the last column is whole.
_WIDEST_LAST = 200


def as_text(table: Table) -> str:
    """The titles over a rule, the rows, and the notes below an empty line: texts on the left, numbers on the right."""
    table = table.plain()
    titles = [column.title for column in table.columns]
    if not table.columns:
        return "\n".join(shown(text, LONGEST_SENTENCE) for text in (table.sentence, *table.notes))
    widest = [_WIDEST] * len(titles)
    if table.columns[-1].unit == "words":
        widest[-1] = _WIDEST_LAST
    cells = [[shown(cell, most) for cell, most in zip(row, widest, strict=True)] for row in (titles, *table.texts())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        _SPACING.join(
            cell.ljust(width) if column.unit in TEXTS else cell.rjust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        )
        for row in cells
    ]
    head, *body = (line.rstrip() for line in lines)
    sentence = [shown(table.sentence, LONGEST_SENTENCE)] if table.sentence else []
    notes = ["", *(shown(note, LONGEST_SENTENCE) for note in table.notes)] if table.notes else []
    return "\n".join([*sentence, head, "-" * len(lines[0]), *body, *notes])
