"""Functions that run on an engine: they prepare it, record there, and pack what was recorded."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

from mtprof_nb.cell.default_flags import records_everything
from mtprof_nb.cell.options import RECORD_FLAGS
from mtprof_nb.model.file import recording_writer
from mtprof_nb.profiler import profile
from mtprof_nb.recording import Results
from mtprof_nb.views.frontend import running_shell

#: The variable of the engine that holds a recording until it is fetched.
RECORDING = "_mtprof_recording"


def clock() -> tuple[str, int]:
    """The host of this engine, and its time in Unix nanoseconds."""
    return platform.node(), time.time_ns()


def prepare() -> None:
    """Load the magics into the engine's shell, and drop a recording that was not fetched."""
    shell = running_shell()
    shell.user_ns.pop(RECORDING, None)
    shell.extension_manager.load_extension("mtprof_nb")


def start(options: Mapping[str, Any]) -> None:
    """Start a profile, which `stop_and_pack` ends."""
    _new_profile(options).start()


def stop_and_pack() -> bytes:
    """End the profile of `start`, and return what it recorded."""
    running_shell().user_ns[RECORDING].stop()
    return packed_recording()


def call(options: Mapping[str, Any], function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The value of a call, recorded. The recording is left for `packed_recording`, also if the call fails."""
    with _new_profile(options):
        return function(*arguments)


def packed_recording() -> bytes:
    """The recording of this engine as the content of a file `.mtp`; `LookupError` if there is none."""
    recorded: Results | None = running_shell().user_ns.pop(RECORDING, None)
    if recorded is None:
        msg = "nothing was recorded: the code did not start"
        raise LookupError(msg)
    content = BytesIO()
    recording_writer.write(recorded.trace, content)
    return content.getvalue()


def _new_profile(options: Mapping[str, Any]) -> profile:
    """The profile that `packed_recording` packs. It records everything where that costs little, as a cell does."""
    everything = records_everything(options.get("hook", "auto"), options.get("activities"))
    prof = profile(**{**dict.fromkeys(RECORD_FLAGS, everything), **options})
    running_shell().user_ns[RECORDING] = prof
    return prof
