"""The user's own folder of compiled recorders: private, checked before each use, and cleaned after each build."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from mtprof_nb.capture.native.recorder_key import RecorderKey
from mtprof_nb.errors import BuildError

SWITCH = "MTPROF_RECORDER"
_DAY_S = 24 * 3600
#: Days without use after which a recorder is removed, and one of the same torch and Python but of another source.
UNUSED_DAYS = 60
SUPERSEDED_DAYS = 2
_HAS_LOCKS = find_spec("fcntl") is not None


class SharedFolderError(BuildError):
    """Another user could write to the folder of the recorder, or to its file."""


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
        if status.st_uid not in owners or (_others_write(status) if is_ours else _others_rename(status)):
            _refuse(path, "below it")


def _others_write(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _others_rename(status: os.stat_result) -> bool:
    """Whether another user may put another folder in the place of one in this folder."""
    if status.st_mode & stat.S_ISVTX or not _others_write(status):
        return False
    return bool(status.st_mode & stat.S_IWOTH) or not _is_own_group(status.st_gid)


def _is_own_group(number: int) -> bool:
    """Whether the group has the user's name and no other member, as systems with umask 002 give to each user."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _refuse(path: Path, where: str) -> NoReturn:
    msg = (
        f"another user could write to {str(path)!r}, so no recorder is loaded from {where}: "
        "make it yours (chown, chmod go-w), or set XDG_CACHE_HOME to a folder of your own"
    )
    raise SharedFolderError(msg)


class RecorderFiles:
    """The paths of one recorder in its folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        #: The compiled extension module.
        self.binary = folder / f"{name}.so"
        #: Has the digest of the binary. Written after it: a binary without one is not complete.
        self.digest = folder / f"{name}.sha256"
        #: Command and output of the last build.
        self.log = folder / f"{name}.log"
        #: Exists if the last build failed, and has its error message.
        self.failure = folder / f"{name}.failed"
        #: Locked while a process builds.
        self.lock = folder / f"{name}.lock"

    def is_built(self) -> bool:
        """Whether the binary is there, as the build wrote it; `BuildError` if another user could have written it."""
        try:
            status, expected = self.binary.lstat(), self.digest.read_text(encoding="ascii")
            if hasattr(os, "geteuid") and (status.st_uid not in (os.geteuid(), 0) or not _is_private_file(status)):
                _refuse(self.binary, "it")
            return digest_of(self.binary) == expected
        except (FileNotFoundError, UnicodeDecodeError):
            return False

    def remove_damaged(self) -> bool:
        """Remove a binary that is not as it was built, unless a process builds it now; whether it was removed.

        Loading a file that was cut short ends the process with SIGBUS.
        """
        if not (self.binary.exists() and self.digest.exists()):
            return False
        with self.lock.open("w") as file:
            if not _lock(file.fileno(), wait=False) or self.is_built():
                return False
            self.digest.unlink(missing_ok=True)
            self.binary.unlink(missing_ok=True)
        return True

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


def digest_of(binary: Path) -> str:
    """The digest that shows whether a binary is damaged; it takes 0.2 ms for 220 kB."""
    return hashlib.sha256(binary.read_bytes()).hexdigest()


def _is_private_file(status: os.stat_result) -> bool:
    """Whether it is a file, and no link, to which only its owner may write."""
    return stat.S_ISREG(status.st_mode) and not _others_write(status)


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
        paths = [path for path in (files.binary, files.digest, files.log, files.failure, files.lock) if path.exists()]
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
