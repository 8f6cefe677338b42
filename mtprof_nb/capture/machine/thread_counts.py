"""How many threads torch computes with, and how many processors there are for them."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any

from mtprof_nb.capture.machine.usable_processors import usable_cores, usable_processors

#: Variables of the environment that set the number of threads as torch is imported.
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def thread_counts() -> dict[str, Any] | None:
    """The numbers of threads and processors, how many processors are busy, and the variable that sets the threads.

    None without torch, and where the system does not tell: no recording fails for want of these numbers.
    """
    with suppress(Exception):
        return {
            "threads": _torch().get_num_threads(),
            "processors": usable_processors(),
            "cores": usable_cores(),
            "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1,
            "set_by": next((name for name in _VARIABLES if os.environ.get(name)), ""),
        }
    return None


def counts_text(at_start: dict[str, Any] | None) -> str | None:
    """JSON of the numbers; None if they are not known, or the program has changed the number of threads."""
    with suppress(Exception):
        if at_start is not None and at_start["threads"] == _torch().get_num_threads():
            return json.dumps(at_start)
    return None


def _torch() -> Any:
    """The module where it is imported; it may still lack everything, while it is being imported."""
    return sys.modules["torch"]
