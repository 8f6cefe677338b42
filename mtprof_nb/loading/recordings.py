"""`load`: a recording from its file, or from the files of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from mtprof_nb.errors import LoadError
from mtprof_nb.loading.chosen_files import PathLike, chosen_files, is_own
from mtprof_nb.loading.processes_of_files import joined
from mtprof_nb.loading.progress_bar import Progress, progress_bar
from mtprof_nb.model.file import recording_reader
from mtprof_nb.model.trace import Trace
from mtprof_nb.results.loaded_recording import Recording


def load(path: PathLike | Iterable[PathLike]) -> Recording:
    """A recording from a file that `save()` wrote.

    `path` may also be a list of files, a pattern such as `"runs/*.mtp"`, or a folder. Many files are the processes of
    one recording. Their ranks are those that the files tell, else those in their names.

    `LoadError` says what is wrong with a file that cannot be read.
    """
    files = chosen_files(path)
    _check_own(files)
    with progress_bar(f"loading {files[0].name if len(files) == 1 else f'{len(files)} files'}") as progress:
        shares = _shares(files, progress)
        traces = [_read(file, share) for file, share in zip(files, shares, strict=True)]
    return Recording(joined(files, traces, list, by_order=False))


def _check_own(files: Sequence[Path]) -> None:
    other = next((file for file in files if not is_own(file)), None)
    if other is not None:
        msg = f"cannot load {str(other)!r}: it is no file of save(): name a file in .mtp"
        raise LoadError(msg)


def _read(file: Path, progress: Progress | None) -> Trace:
    trace = recording_reader.read(file)
    if progress is not None:
        progress(1.0)
    return trace


def _shares(files: Sequence[Path], progress: Progress | None) -> list[Progress | None]:
    """For each file a function that is told how much of it is done, as a share of 1."""
    if progress is None:
        return [None] * len(files)
    sizes = [file.stat().st_size for file in files]
    total, before = max(sum(sizes), 1), [0, *accumulate(sizes)]
    return [
        lambda share, done=done, size=size: progress((done + share * size) / total)  # type: ignore[misc]
        for done, size in zip(before[:-1], sizes, strict=True)
    ]
