"""`init_ranks`: a process group over all engines, for DistributedDataParallel in a notebook."""

from __future__ import annotations

import os
import platform
from datetime import timedelta
from typing import Any

from mtprof_nb.cluster.engines import Engines

_LOCAL = "127.0.0.1"
#: The name under which an engine keeps the store that the group meets in.
_STORE = "_mtprof_rank_store"


def init_ranks(view: Any, backend: str = "gloo", *, address: str | None = None, timeout_s: float = 60) -> list[int]:
    """Join the engines of `view` in a process group of `torch.distributed`. Returns their ids, by rank.

    The rank of an engine is its place among the targets of `view`. Each engine has the variables `RANK`, `WORLD_SIZE`,
    `LOCAL_RANK`, `LOCAL_WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT` in its environment afterwards, and as many threads
    as its share of the host's cores unless `OMP_NUM_THREADS` is set. A group of an earlier call is left.

    `address` is where the other hosts reach the first engine; by default the name of its host, and on one host alone
    the loopback address. `RanksError` names the engine that could not join, and the reason.
    """
    engines = Engines(view)
    hosts = engines.ask_all(leave)
    where = address or (_LOCAL if len(set(hosts)) == 1 else hosts[0])
    first = engines.only(engines.ids[0])
    (port,) = first.ask_all(open_store, where, len(hosts), timeout_s)
    places = {
        engine: (rank, hosts[:rank].count(host), hosts.count(host))
        for rank, (engine, host) in enumerate(zip(engines.ids, hosts, strict=True))
    }
    engines.ask_each(join, places, len(hosts), where, port, backend, timeout_s)
    return list(engines.ids)


def leave() -> str:
    """Leave the group that this engine is in, if there is one. Returns the name of its host."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()
    vars(dist).pop(_STORE, None)
    return platform.node()


def open_store(address: str, size: int, timeout_s: float) -> int:
    """Open the store in which the engines find each other, on a free port. Returns the port."""
    import torch.distributed as dist

    timeout = timedelta(seconds=timeout_s)
    store = dist.TCPStore(address, 0, size, is_master=True, timeout=timeout, wait_for_workers=False)
    setattr(dist, _STORE, store)
    port: int = store.port
    return port


def join(place: tuple[int, int, int], size: int, address: str, port: int, backend: str, timeout_s: float) -> None:
    """Join the group as the rank, the rank on this host, and of the number on this host, that `place` has."""
    import torch
    import torch.distributed as dist

    rank, local_rank, local_size = place
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max((os.cpu_count() or 1) // local_size, 1))
    timeout = timedelta(seconds=timeout_s)
    store = vars(dist).get(_STORE)
    if store is None:
        store = dist.TCPStore(address, port, size, is_master=False, timeout=timeout, wait_for_workers=False)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
