"""Copies and collectives, recognised by the metadata that real recordings have."""

import json
from dataclasses import replace

from traces import event, make_trace

from mtprof_nb.model.device_facts import collective_of, device_facts, moved_bytes
from mtprof_nb.model.trace import KINDS, Collective

ALL_REDUCE = {
    "Collective name": "allreduce",
    "Process Group Name": "0",
    "Group size": 2,
    "dtype": "Float",
    "In msg nelems": 6637568,
    "Out msg nelems": 6637568,
}


def test_a_collective_has_its_group_size_type_and_bytes():
    assert collective_of(ALL_REDUCE) == Collective("allreduce", "0", 2, "Float", 6637568, 6637568)
    assert moved_bytes(ALL_REDUCE) == 4 * 6637568
    assert moved_bytes(ALL_REDUCE | {"In msg nelems": 8, "Out msg nelems": 16, "dtype": "BFloat16"}) == 32


def test_what_the_metadata_does_not_tell_is_unknown():
    assert collective_of({"bytes": 8}) is None
    assert collective_of({"Collective name": "wait"}) == Collective("wait")
    assert moved_bytes({"Collective name": "wait"}) == moved_bytes({}) == -1
    assert moved_bytes(ALL_REDUCE | {"dtype": "NewType"}) == -1


def test_events_get_the_facts_of_their_metadata():
    said = {key: json.dumps(value) for key, value in ALL_REDUCE.items()}
    on_device = {"device": "CUDA", "thread": 7}
    trace = make_trace(
        [
            event("record_param_comms", 0, 2, extra=said),
            event("ncclDevKernel_AllReduce", 10, 20, kind="kernel", extra=said, **on_device),
            event("Memcpy HtoD", 30, 40, kind="copy", extra={"bytes": "128"}, **on_device),
            event("gemm", 50, 60, kind="kernel", extra={"grid": "[8, 1, 1]"}, **on_device),
            event("ncclKernel_Broadcast", 70, 80, kind="kernel", **on_device),
        ]
    )

    found = replace(trace, **device_facts(vars(trace)))

    assert [KINDS[kind] for kind in found.kind] == ["op", "collective", "copy", "kernel", "collective"]
    assert found.collectives == (collective_of(ALL_REDUCE),)
    assert found.collective.tolist() == [0, 0, -1, -1, -1]
    assert found.moved_bytes.tolist() == [4 * 6637568, 4 * 6637568, 128, -1, -1]
