"""The recorded process, and its process group as torch's traces describe it."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

from mtprof_nb.capture.torch_private.process_state import group_configs
from mtprof_nb.model.trace import Process


def this_process() -> Process:
    """The running process, with its rank where it is in a process group."""
    groups = _groups()
    return Process(os.getpid(), -1 if groups is None else groups.get_rank(), platform.node())


def distributed_info() -> str | None:
    """JSON for the key `distributedInfo` of a Chrome trace; None outside of a process group."""
    groups = _groups()
    if groups is None:
        return None
    info = {
        "backend": groups.get_backend(),
        "rank": groups.get_rank(),
        "world_size": groups.get_world_size(),
        "pg_count": groups.get_pg_count(),
        "pg_config": group_configs(groups),
    }
    if info["backend"] == "nccl":
        info["nccl_version"] = ".".join(map(str, sys.modules["torch"].cuda.nccl.version()))
    return json.dumps(info, default=str)


def _groups() -> Any:
    """Torch's module of process groups, None where there is no group."""
    groups = sys.modules.get("torch.distributed")
    return groups if groups is not None and groups.is_available() and groups.is_initialized() else None
