"""`load`: a recording from its file, or from the files of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from mtprof_nb import reading
from mtprof_nb.errors import LoadError
from mtprof_nb.loading.chosen_files import PathLike, chosen_files, is_own
from mtprof_nb.loading.one_job import Extent, check_one_job
from mtprof_nb.loading.processes_of_files import joined_files
from mtprof_nb.model.file import recording_reader
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording
from mtprof_nb.views.progress_bar import Progress, progress_bar


def load(path: PathLike | Iterable[PathLike], *, partial: bool = False) -> Recording:
    """A recording from a file that `save()` wrote, or from a Chrome trace of Kineto or Ascend, `.json` or `.json.gz`.

    `path` may also be a list of files, a pattern such as `"runs/*.json.gz"`, or a folder. Many
    files are the processes of one recording. Their ranks are read from the files, else from their
    names, else from their order; clocks of several machines are aligned on the ends of collectives.
    Files that `save()` wrote in different jobs, such as all profiles of a month, are a `LoadError`:
    load them one by one.

    `LoadError` for a file that cannot be read, with the reason. With `partial=True`, what can be read of a damaged
    Chrome trace is loaded, and a note states what is missing; a damaged `.mtp` file cannot be read in part.

        >>> prof.save("run.mtp")
        >>> len(mtp.load("run.mtp").events()) == len(prof.events())
        True
    """
    files = chosen_files(path)
    are_own = _are_own(files)
    if are_own and len(files) > 1:
        check_one_job(Extent(file, *recording_reader.read_outline(file)) for file in files)
    title = files[0].name if len(files) == 1 else f"{len(files)} files"
    with progress_bar(f"loading {title}") as progress:
        shares = _shares(files, progress)
        traces = [_read(file, are_own, partial, share) for file, share in zip(files, shares, strict=True)]
    trace = joined_files(files, traces, reading.align, by_order=not are_own)
    return Recording(trace if are_own or trace.label else replace(trace, label=title))


def _are_own(files: Sequence[Path]) -> bool:
    own = [file for file in files if is_own(file)]
    if own and len(own) < len(files):
        other = next(file for file in files if file not in own)
        msg = f"{str(own[0])!r} is a file of save(), {str(other)!r} is not: load files of one kind, such as *.mtp"
        raise LoadError(msg)
    return bool(own)


def _read(file: Path, is_own_file: bool, partial: bool, progress: Progress | None) -> Trace:
    if not is_own_file:
        return reading.read(file, partial=partial, progress=progress)
    trace = recording_reader.read(file)
    if progress is not None:
        progress(1.0)
    return trace


def _shares(files: Sequence[Path], progress: Progress | None) -> list[Progress | None]:
    """For each file a function that takes the share of it that is done, from 0 to 1."""
    if progress is None:
        return [None] * len(files)
    sizes = [file.stat().st_size for file in files]
    total, before = max(sum(sizes), 1), [0, *accumulate(sizes)]
    return [
        lambda share, done=done, size=size: progress((done + share * size) / total)  # type: ignore[misc]
        for done, size in zip(before[:-1], sizes, strict=True)
    ]
