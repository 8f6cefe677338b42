"""Kinds of events: their numbers, and what follows from the table of kinds."""

import numpy as np
from traces import event, make_trace

from mtprof_nb.model import trace as model
from mtprof_nb.model.trace import ACTIVITY_TYPES, DEVICE_WORK, KINDS, on_device


def test_each_kind_has_the_number_of_its_constant() -> None:
    constants = [getattr(model, name.upper()) for name in KINDS]

    assert constants == list(range(10))
    assert KINDS[:5] == ("op", "scope", "python", "runtime", "kernel")


def test_names_of_kineto_and_the_kinds_of_devices_follow_from_the_table() -> None:
    assert dict(zip(KINDS, ACTIVITY_TYPES, strict=True)) == {
        "op": "cpu_op",
        "scope": "user_annotation",
        "python": "python_function",
        "runtime": "runtime",
        "kernel": "kernel",
        "copy": "gpu_memcpy",
        "set": "gpu_memset",
        "collective": "kernel",
        "sync": "cuda_sync",
        "device_scope": "gpu_user_annotation",
    }
    assert DEVICE_WORK == ("kernel", "copy", "set", "collective")
    trace = make_trace([event(name, 0, 1, kind=name) for name in KINDS])
    assert [KINDS[kind] for kind in trace.kind[trace.is_device_work]] == list(DEVICE_WORK)
    is_on_device = on_device(np.arange(10, dtype=np.int8)).tolist()
    assert [name for name, on in zip(KINDS, is_on_device, strict=True) if on] == [*DEVICE_WORK, "sync", "device_scope"]
