"""The tab of changed lines: both versions of a file side by side."""

from __future__ import annotations

from mtprof_nb.comparison.side_by_side import Row, Version, side_by_side
from mtprof_nb.views.comparison.comparison_tables import labels
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Tab

_UNCHANGED = "The lines that ran are the same in both, or were not recorded on both sides."
_LONGEST = 200


class SideBySideTab(Tab):
    """Sends all that the page shows at once; it has no questions."""

    def first(self) -> Answer:
        compared = self._scene.compared
        files = side_by_side(compared.sides)
        if not files:
            return {"empty": _UNCHANGED}
        times = [version.ns for file in files for row in file.rows if row for version in row[:2] if version]
        return {
            "labels": list(labels(compared)),
            "largest_ns": max((ns for ns in times if ns is not None), default=0.0),
            "files": [
                {
                    "a_title": shown(file.a_title),
                    "b_title": shown(file.b_title),
                    "rows": [None if row is None else _written(row) for row in file.rows],
                }
                for file in files
            ],
        }


def _written(row: Row) -> Answer:
    return {"a": _version(row.a), "b": _version(row.b), "change": row.change}


def _version(version: Version | None) -> Answer | None:
    if version is None:
        return None
    text = shown(version.text.expandtabs(4).rstrip(), _LONGEST)
    return {"number": version.number, "text": text, "ns": version.ns}
