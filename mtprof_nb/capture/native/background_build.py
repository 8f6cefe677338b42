"""Builds the recorder in a process of its own, which neither delays the notebook nor ends with it."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from mtprof_nb.capture.machine.available_memory import available_bytes
from mtprof_nb.capture.native.compiler import python_command
from mtprof_nb.capture.native.recorder_build import build_recorder, checked_key
from mtprof_nb.capture.native.recorder_cache import RecorderFiles, SharedFolderError, private_folder
from mtprof_nb.errors import BuildError

#: Four times what the compiler needs, so that the notebook does not run out of memory.
_NEEDED_BYTES = 2 << 30
_LAUNCH_S = 10


def start_build() -> str | None:
    """Start the build, and return torch's version; None if there is nothing to build, or it failed before.

    :raises SharedFolderError: another user could write to the folder of the recorder, so that none is loaded.
    """
    try:
        key = checked_key()
        files = RecorderFiles(private_folder(), key.name)
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
    child = python_command("from mtprof_nb.capture.native.background_build import build; build()")
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


def build() -> None:
    """Build at the lowest priority; an error stands in the log."""
    os.nice(19)
    with suppress(OSError):
        # If memory ends all the same, this process ends before the notebook's.
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(BuildError):
        build_recorder()
