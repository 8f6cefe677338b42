"""The recording itself as a file, which `mtprof_nb.load` reads."""

from __future__ import annotations

import os

from mtprof_nb.export.atomic import replacing
from mtprof_nb.model.file import recording_writer
from mtprof_nb.model.trace import Trace

#: Suffixes by which other programs would take the file for a trace in JSON.
_OTHERS = (".json", ".gz")


def write(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write all that `trace` holds. `ValueError` for a name that promises a Chrome trace."""
    name = os.fsdecode(path)
    if name.endswith(_OTHERS):
        msg = f"a recording is saved as .mtp: save {name!r} under another name, or call export_chrome_trace"
        raise ValueError(msg)
    with replacing(path) as file:
        recording_writer.write(trace, file)
