"""Process groups of `torch.distributed`."""

from __future__ import annotations

from typing import Any


def group_configs(distributed: Any) -> Any:
    """The configurations of all groups, as torch writes them to a trace."""
    return distributed.distributed_c10d._get_all_pg_configs()
