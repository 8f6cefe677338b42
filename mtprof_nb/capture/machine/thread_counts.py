"""How many threads torch computes with, and how many processors there are for them."""

from __future__ import annotations

import json
import os
import sys

from mtprof_nb.capture.machine.usable_processors import usable_cores, usable_processors


def thread_counts() -> dict[str, float] | None:
    """The numbers of threads and processors, and how many processors are busy; None without torch."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_num_threads"):  # it may be being imported
        return None
    return {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "processors": usable_processors(),
        "cores": usable_cores(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1,
    }


def counts_text(at_start: dict[str, float] | None) -> str | None:
    """JSON of the numbers; None if they are not known, or the program has changed the number of threads."""
    now = thread_counts()
    if at_start is None or now is None or at_start["threads"] != now["threads"]:
        return None
    return json.dumps(at_start)
