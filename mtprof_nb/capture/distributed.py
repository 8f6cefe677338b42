"""The process group that a recording was made in, as torch tells of it in its traces."""

from __future__ import annotations

import json
import sys


def distributed_info() -> str | None:
    """JSON for the key `distributedInfo` of a Chrome trace; None outside of a process group."""
    torch, groups = sys.modules.get("torch"), sys.modules.get("torch.distributed")
    if torch is None or groups is None or not groups.is_available() or not groups.is_initialized():
        return None
    found = {
        "backend": groups.get_backend(),
        "rank": groups.get_rank(),
        "world_size": groups.get_world_size(),
        "pg_count": groups.get_pg_count(),
        "pg_config": groups.distributed_c10d._get_all_pg_configs(),
    }
    if found["backend"] == "nccl":
        found["nccl_version"] = ".".join(map(str, torch.cuda.nccl.version()))
    return json.dumps(found, default=str)
