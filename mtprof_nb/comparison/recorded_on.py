"""On which machines and devices a recording was made, as far as it says."""

from __future__ import annotations

import json
from typing import Any

from mtprof_nb.model.trace import Trace


def hosts(run: Trace) -> set[str]:
    """Names of the machines."""
    return {process.host for process in run.processes if process.host}


def device_names(run: Trace) -> set[str]:
    """Names of the devices beside the CPU, such as "Tesla V100-SXM2-16GB"; else their types."""
    described = _described(run, "deviceProperties")
    names = (
        [device.get("name") for device in described if isinstance(device, dict)] if isinstance(described, list) else []
    )
    return {name for name in names if isinstance(name, str)} or {device for device in run.devices if device != "CPU"}


def world_sizes(run: Trace) -> set[str]:
    """Numbers of processes of the distributed job."""
    described = _described(run, "distributedInfo")
    size = described.get("world_size") if isinstance(described, dict) else None
    return {str(size)} if isinstance(size, int) else set()


def _described(run: Trace, key: str) -> Any:
    """The metadata under a key of Kineto's; None if there is none that can be read."""
    try:
        return json.loads(run.metadata.get(key, "null"))
    except ValueError:
        return None
