"""Files that are whole or untouched: written beside their target, then moved into place."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from io import BufferedWriter, FileIO
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING

from mtprof_nb.errors import ExportError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: Level 6 of gzip is nearly as small as 9 on traces, at a fraction of the time.
COMPRESSION_LEVEL = 6
_BUFFER_BYTES = 1 << 20
#: After so many bytes, the beginning of a file is sent to the disk and leaves the page cache.
_SENT_BYTES = 1 << 23
#: Not on Windows, where an open file cannot be removed anyway.
_HAS_LOCKS = find_spec("fcntl") is not None
#: On Linux and the BSDs.
_CAN_SEND = hasattr(os, "posix_fadvise")

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space, or choose a path on another disk",
    errno.EDQUOT: "your disk quota is used up: free some space, or choose a path on another disk",
    errno.EFBIG: "the file would be larger than allowed: record fewer steps, or choose a path on another disk",
    errno.EROFS: "the file system is read-only: choose a path on another one",
    errno.EACCES: "permission denied: choose a folder that you may write to",
    errno.EPERM: "not permitted: choose a folder that you may write to",
    errno.ENOENT: "its folder does not exist: create it first, or choose another path",
    errno.ENOTDIR: "a part of its path is a file, not a folder: choose another path",
    errno.EISDIR: "it is a folder: name a file in it",
    errno.ENAMETOOLONG: "its name is too long: choose a shorter one",
    errno.ELOOP: "its path is a loop of links: choose another path",
}


def export_error(path: str | os.PathLike[str], error: OSError | ValueError) -> ExportError:
    """The error to raise for `error`: which file, what is wrong, what to do."""
    code = error.errno if isinstance(error, OSError) else None
    remedy = _REMEDIES.get(code or 0, f"{getattr(error, 'strerror', None) or error}: choose another path")
    return ExportError(f"cannot write {os.fspath(path)!r}: {remedy}")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write bytes to, compressed where `path` ends in `.gz`; it becomes `path` when the block ends well.

    If the block or the disk fails, the file at `path` stays unchanged. `ExportError` says what to do.
    """
    target = _resolved(path)
    try:
        with _opened(target) as file, _compressed(file, os.fsdecode(path)) as compressed:
            yield compressed
    except OSError as error:
        raise export_error(path, error) from error


def _resolved(path: str | os.PathLike[str]) -> Path:
    """The file to replace: of a link, the file that it points to."""
    try:
        return Path(os.path.realpath(os.fsdecode(path)))
    except (OSError, ValueError) as error:
        raise export_error(path, error) from error


@contextmanager
def _compressed(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if not name.endswith(".gz"):
        yield file
        return
    # No name and no time inside: the same trace gives the same bytes.
    with gzip.GzipFile("", "wb", COMPRESSION_LEVEL, file, mtime=0) as compressed:
        yield compressed  # type: ignore[misc]


@contextmanager
def _opened(target: Path) -> Iterator[IO[bytes]]:
    try:
        mode: int | None = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None:
        _check_writable(target, mode)
    if mode is not None and not stat.S_ISREG(mode):
        # A pipe or a device has nothing to keep, and must not be replaced by a file.
        with target.open("wb") as device:
            yield device
        return
    _remove_stale(target)
    with ExitStack() as cleanup:
        beside, file = _create_beside(target)
        cleanup.callback(_remove, beside)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
            if _HAS_LOCKS:
                # While it is locked, so that no other export takes it for a stale one.
                beside.replace(target)
        finally:
            file.close()
        if not _HAS_LOCKS:
            beside.replace(target)
        cleanup.pop_all()


def _check_writable(target: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _prefix(target: Path) -> str:
    # Of fixed length, so that the longest file name there is can be written too.
    return f".mtprof-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def _create_beside(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `target`, locked while it is open, so that another export does not take it for a stale one."""
    while True:
        beside = target.with_name(f"{_prefix(target)}{token_hex(8)}.tmp")
        file = BufferedWriter(_Outgoing(beside, "xb"), _BUFFER_BYTES)
        _lock(file, wait=True)
        # Before it was locked, another export may have removed it as a stale one.
        if beside.exists():
            return beside, file
        file.close()


class _Outgoing(FileIO):
    """A file that is sent to the disk while it is written.

    A trace may have gigabytes: in the page cache they would displace the user's files.
    """

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._written = self._sent = 0

    def write(self, data: ReadableBuffer, /) -> int:
        count = super().write(data)
        self._written += count
        if _CAN_SEND and self._written - self._sent >= _SENT_BYTES:
            # What the call before has begun to send is on the disk by now, as a rule, and leaves the cache.
            first = max(self._sent - _SENT_BYTES, 0)
            with suppress(OSError):
                os.posix_fadvise(self.fileno(), first, self._written - first, os.POSIX_FADV_DONTNEED)
            self._sent = self._written
        return count


def _lock(file: IO[bytes], *, wait: bool) -> bool:
    """Lock `file`. False while another export has it locked, or where there are no locks."""
    if not _HAS_LOCKS:
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_stale(target: Path) -> None:
    """Remove files that killed exports to the same target left; a file that is still written is locked."""
    for beside in target.parent.glob(f"{_prefix(target)}*.tmp"):
        if not _HAS_LOCKS:
            _remove(beside)
            continue
        with suppress(OSError), beside.open("r+b") as file:
            if _lock(file, wait=False):
                _remove(beside)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
