"""Files of a recording whose format is chosen by the suffix of their name."""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from pathlib import Path

from mtprof_nb.errors import ExportError
from mtprof_nb.model.trace import Trace

#: The module that writes each format, with a function `write(trace, path)`.
_WRITERS = {
    ".mtp": "mtprof_nb.export.recording_file",
    ".json": "mtprof_nb.export.chrome_trace",
    ".json.gz": "mtprof_nb.export.chrome_trace",
}
SUFFIXES = tuple(_WRITERS)


def write(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a recording in the format of the suffix; `ExportError` for an unknown one."""
    name = Path(path).name
    writer = next((module for suffix, module in _WRITERS.items() if name.endswith(suffix)), None)
    if writer is None:
        msg = f"cannot write {fspath(path)!r}: unknown suffix, end it in {', '.join(SUFFIXES)}"
        raise ExportError(msg)
    import_module(writer).write(trace, path)
