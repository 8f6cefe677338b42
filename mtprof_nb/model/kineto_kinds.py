"""Kineto's names of activities, which are the categories of its files, and the kinds of events that they are."""

from __future__ import annotations

from mtprof_nb.model.trace import COPY, DEVICE_SCOPE, KERNEL, OP, PYTHON, RUNTIME, SCOPE, SET, SYNC

#: The kind of activities that become no events.
LEFT_OUT = -1
_KINDS = {
    "cpu_op": OP,
    "operator": OP,
    "hpu_op": KERNEL,
    "user_annotation": SCOPE,
    "collective_comm": SCOPE,
    "python_function": PYTHON,
    "python": PYTHON,
    "runtime": RUNTIME,
    # Time that the recorder took: torch's own tables list it among the calls of the runtime.
    "overhead": RUNTIME,
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": SET,
    "memset": SET,
    "gpu_user_annotation": DEVICE_SCOPE,
    "cuda_event": SYNC,
    # A thread of the host waits, unlike in `cuda_sync`.
    "xpu_sync": RUNTIME,
    "cuda_profiler_range": DEVICE_SCOPE,
    "mtia_ccp_events": KERNEL,
    "mtia_insight": DEVICE_SCOPE,
    "mtia_workloadd": DEVICE_SCOPE,
    "trace": LEFT_OUT,
}
_ENDINGS = {
    "_runtime": RUNTIME,
    "_driver": RUNTIME,
    "_memcpy": COPY,
    "_memset": SET,
    "_sync": SYNC,
    "_user_annotation": DEVICE_SCOPE,
    "_kernel": KERNEL,
    "_kernels": KERNEL,
}
#: Kinds of activities that are of another kind on a device: calls of the runtime stand for waiting.
ON_DEVICE = {RUNTIME: SYNC, SCOPE: DEVICE_SCOPE}


def kind_of_activity(name: str) -> int | None:
    """The kind of activities of this name; None for one that is not known."""
    if (name := name.lower()) in _KINDS:
        return _KINDS[name]
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def kind_on_device(name: str) -> int:
    """The kind of activities of this name that ran on a device; unknown ones are kernels."""
    kind = kind_of_activity(name)
    return KERNEL if kind is None else ON_DEVICE.get(kind, kind)
