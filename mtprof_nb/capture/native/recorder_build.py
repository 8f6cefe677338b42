"""Builds the native recorder into the user's cache folder, here or in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from mtprof_nb.capture.machine.available_memory import available_bytes
from mtprof_nb.capture.native.compiler import compile_recorder, find_compiler, include_folders, python_command
from mtprof_nb.capture.native.recorder_cache import (
    SWITCH,
    RecorderFiles,
    SharedFolderError,
    clean,
    digest_of,
    is_switched_off,
    private_folder,
)
from mtprof_nb.capture.native.recorder_key import RecorderKey, key_of_installed_torch
from mtprof_nb.errors import BuildError

#: Four times what the compiler needs, so that the notebook does not run out of memory.
_NEEDED_BYTES = 2 << 30
_LAUNCH_S = 10


def build_recorder(force: bool = False) -> Path:
    """Compile the native recorder for the installed torch and Python, and return the path of the binary.

    This takes less than a minute, once: a binary that is whole is kept unless `force` is true. It is written to the
    folder `mtprof_nb/recorder` in the user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`), with its log.

    :raises BuildError: PyTorch, a C++ compiler or headers are missing, or the compiler fails.
    """
    key = checked_key()
    files = _files_of(key)
    with files.locked():
        if force or not files.is_built():
            _build(key, files)
            clean(files.folder, key)
    return files.binary


def is_built() -> bool:
    """Whether the recorder for this environment exists; `BuildError` if it cannot be built here."""
    return _files_of(checked_key()).is_built()


def earlier_failure() -> str | None:
    """Why the last build of this recorder failed; None if it did not fail."""
    with suppress(OSError):
        return _files_of(checked_key()).failure.read_text(encoding="utf-8")
    return None


def _files_of(key: RecorderKey) -> RecorderFiles:
    return RecorderFiles(private_folder(), key.name)


def checked_key() -> RecorderKey:
    """The key of the recorder to build; `BuildError` if this environment lacks what a build needs."""
    if is_switched_off():
        msg = f"the environment variable {SWITCH} is 'off': unset it to build the native recorder"
        raise BuildError(msg)
    key = key_of_installed_torch()
    if key is None:
        msg = "the native recorder needs PyTorch, which is not installed: install it first"
        raise BuildError(msg)
    find_compiler()
    include_folders(key)
    return key


def _build(key: RecorderKey, files: RecorderFiles) -> None:
    """Build in a folder of its own and move the binary into place; a failure is noted, so that nothing repeats it."""
    workshop = files.folder / f"{files.name}-{token_hex(8)}"
    try:
        workshop.mkdir(mode=0o700)
        files.log.write_bytes(b"")
        compiled = workshop / "recorder.so"
        compile_recorder(key, compiled, files.log)
        compiled.chmod(0o700)
        digest = workshop / "digest"
        digest.write_text(digest_of(compiled), encoding="ascii")
        # On the disk before they get their names: after a power failure, half a library would crash who loads it.
        for path in (compiled, digest):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        # Who loads meanwhile finds a binary without a digest, and a lock: it is being built.
        files.digest.unlink(missing_ok=True)
        compiled.replace(files.binary)
        digest.replace(files.digest)
        files.failure.unlink(missing_ok=True)
    except Exception as error:
        with suppress(OSError):
            files.failure.write_text(str(error), encoding="utf-8")
        if isinstance(error, OSError):
            msg = f"the native recorder could not be written ({error}): free some space, or set XDG_CACHE_HOME"
            raise BuildError(msg) from error
        raise
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def start_build() -> str | None:
    """Start the build in a process that outlives this one, and return torch's version.

    None if there is nothing to build, or it failed before.

    :raises SharedFolderError: another user could write to the folder of the recorder, so that none is loaded.
    """
    try:
        key = checked_key()
        files = _files_of(key)
        is_due = not (files.is_built() or files.failure.exists() or files.is_being_built())
        if not is_due or (available_bytes() or _NEEDED_BYTES) < _NEEDED_BYTES:
            return None
        _launch(files)
    except SharedFolderError:
        raise
    except Exception:
        # `%load_ext` goes on without it.
        return None
    return key.torch_version


def _launch(files: RecorderFiles) -> None:
    child = python_command("from mtprof_nb.capture.native.recorder_build import build_quietly; build_quietly()")
    with files.log.open("a") as log:
        # The shell ends at once, and the build is then nobody's child here: it leaves no zombie, and signals to the
        # notebook's processes do not reach it.
        subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", '"$@" &', "sh", *child],
            cwd=files.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            timeout=_LAUNCH_S,
            check=True,
        )


def build_quietly() -> None:
    """Build at the lowest priority; an error is in the log."""
    os.nice(19)
    with suppress(OSError):
        # If memory ends all the same, this process ends before the notebook's.
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(BuildError):
        build_recorder()
