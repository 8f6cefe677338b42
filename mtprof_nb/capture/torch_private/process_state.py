"""State that torch keeps: autograd's counter, the backend in Python, process groups."""

from __future__ import annotations

from typing import Any


def next_sequence_number(torch: Any) -> int:
    """The number that this thread's next node of autograd gets."""
    return int(torch.autograd._get_sequence_nr())


def private_backend_name(torch: Any) -> str:
    """The name of the device type PrivateUse1, such as `npu`; `privateuseone` without a backend."""
    return str(torch._C._get_privateuse1_backend_name())


def group_configs(distributed: Any) -> Any:
    """The configurations of all process groups, as torch writes them to a trace."""
    return distributed.distributed_c10d._get_all_pg_configs()
