"""The table of `key_averages()` as a text file: flag `--text`."""

from __future__ import annotations

from pathlib import Path

from mtprof_nb.analysis.sort_keys import TITLES
from mtprof_nb.cell.flags import Flags
from mtprof_nb.export.atomic import replacing
from mtprof_nb.recording import Results


def write_table(results: Results, flags: Flags, path: Path) -> None:
    """Write the table, sorted and limited as the flags ask."""
    rows = flags.limit if flags.limit is not None else -1
    sort = flags.sort or "self"
    table = results.key_averages().table(sort_by=TITLES[sort][0] if sort in TITLES else sort, row_limit=rows)
    with replacing(path) as file:
        file.write(table.encode())
