"""`load`: a recording from its file."""

from __future__ import annotations

from os import PathLike

from mtprof_nb.model.file import recording_reader
from mtprof_nb.results.loaded_recording import Recording


def load(path: str | PathLike[str]) -> Recording:
    """The recording that `save()` wrote to `path`. `LoadError` says what is wrong with a file that cannot be read."""
    return Recording(recording_reader.read(path))
