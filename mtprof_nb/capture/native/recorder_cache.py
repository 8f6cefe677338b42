"""The user's own folder of compiled recorders: private, checked before each use, and cleaned after each build."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mtprof_nb.capture.native.recorder_key import RecorderKey
from mtprof_nb.errors import BuildError

SWITCH = "MTPROF_RECORDER"
_DAY_S = 24 * 3600
#: Days without use after which a recorder is removed, and one of the same torch and Python but of another source.
UNUSED_DAYS = 60
SUPERSEDED_DAYS = 2
_HAS_LOCKS = find_spec("fcntl") is not None


def is_switched_off() -> bool:
    """Whether the environment variable `MTPROF_RECORDER` is `off`: nothing is built or loaded then."""
    return os.environ.get(SWITCH, "").strip().lower() == "off"


def cache_folder() -> Path:
    """The folder of compiled recorders, which may not exist yet."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not root.is_absolute():
        home = Path.home()
        caches = {"darwin": home / "Library/Caches", "win32": Path(os.environ.get("LOCALAPPDATA", home))}
        root = caches.get(sys.platform, home / ".cache")
    return root / "mtprof_nb" / "recorder"


def private_folder() -> Path:
    """The folder, created if missing; `BuildError` unless it is the user's alone to write."""
    try:
        folder = cache_folder()
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        check_private(folder)
    except (OSError, RuntimeError) as error:
        if isinstance(error, BuildError):
            raise
        reason = getattr(error, "strerror", None) or error
        msg = f"no folder for the compiled recorder ({reason}): set XDG_CACHE_HOME to a folder of your own"
        raise BuildError(msg) from error
    return folder


def check_private(folder: Path) -> None:
    """Raise `BuildError` if anybody else could put a file into `folder`, or another folder in its place."""
    if not hasattr(os, "geteuid"):
        return
    folder = folder.resolve()
    for path in (folder, *folder.parents):
        status = path.stat()
        is_ours = path in (folder, folder.parent)
        owners = {os.geteuid()} if is_ours else {os.geteuid(), 0}
        forbidden = stat.S_IWGRP | stat.S_IWOTH if is_ours else stat.S_IWOTH
        is_open = status.st_mode & forbidden and not (status.st_mode & stat.S_ISVTX and not is_ours)
        if status.st_uid not in owners or is_open:
            msg = (
                f"another user could write to {str(path)!r}, so no recorder is loaded from below it: "
                "make it yours (chown, chmod go-w), or set XDG_CACHE_HOME to a folder of your own"
            )
            raise BuildError(msg)


@dataclass(frozen=True)
class RecorderFiles:
    """The paths of one recorder in its folder."""

    folder: Path
    name: str

    @property
    def binary(self) -> Path:
        """The compiled extension module; complete if it exists."""
        return self._with(".so")

    @property
    def log(self) -> Path:
        """Command and output of the last build."""
        return self._with(".log")

    @property
    def failure(self) -> Path:
        """Exists if the last build failed, and has its error message."""
        return self._with(".failed")

    @property
    def lock(self) -> Path:
        """Locked while a process builds."""
        return self._with(".lock")

    def _with(self, suffix: str) -> Path:
        return self.folder / f"{self.name}{suffix}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait until no other process builds this recorder, and keep others from it while the block runs."""
        # Without locks two processes build at once, each in a folder of its own; the later one replaces the binary.
        with self.lock.open("w") as file:
            _lock(file.fileno(), wait=True)
            yield

    def is_being_built(self) -> bool:
        """Whether another process builds this recorder now."""
        try:
            with self.lock.open() as file:
                return _HAS_LOCKS and not _lock(file.fileno(), wait=False)
        except OSError:
            return False


def _lock(descriptor: int, *, wait: bool) -> bool:
    if not _HAS_LOCKS:
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks.
        return True
    return True


def clean(folder: Path, key: RecorderKey) -> None:
    """Remove recorders that were not used for long, and the remains of builds that were killed.

    A process that has loaded one keeps it: its file is mapped until the process ends.
    """
    names = {path.name.removesuffix(path.suffix) for path in folder.iterdir() if path.is_file()} - {key.name}
    for name in names:
        days = SUPERSEDED_DAYS if name.startswith(key.family) else UNUSED_DAYS
        files = RecorderFiles(folder, name)
        paths = [path for path in (files.binary, files.log, files.failure, files.lock) if path.exists()]
        if paths and all(_is_older(path, days) for path in paths) and not files.is_being_built():
            for path in paths:
                path.unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and _is_older(path, SUPERSEDED_DAYS):
            shutil.rmtree(path, ignore_errors=True)


def _is_older(path: Path, days: int) -> bool:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > days * _DAY_S
    return False
