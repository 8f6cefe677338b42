"""A handler for `on_trace_ready` that writes each window into a folder, under the names that TensorBoard reads."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from mtprof_nb.export.atomic import export_error


class ExportsChromeTrace(Protocol):
    """A profiler with a finished window."""

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> object: ...


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[ExportsChromeTrace], None]:
    """A callable that writes `<worker>.<nanoseconds>.pt.trace.json` (and `.gz`) into `dir_name`, which it creates.

    The worker is by default this host and process. `use_python_export` is for the profiler that is exported: torch's
    has two writers, the one of this package has one. Called, it raises `ExportError` where it cannot write.
    """
    folder = os.fsdecode(dir_name)

    def write_trace(prof: ExportsChromeTrace) -> None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise export_error(folder, error) from error
        worker = worker_name or f"{platform.node()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(str(Path(folder, f"{name}.gz" if use_gzip else name)), use_python_export)

    return write_trace
