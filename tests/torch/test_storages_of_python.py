"""Memory of storages that Python makes without any op; the truth is torch's own profiler, and the sizes of storages."""

import copy
import io
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recording import NATIVE

import mtprof_nb as mtp
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.capture.native.recorder_loading import import_binary, recorder
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.tabs.memory.memory_tab import MemoryTab

pytestmark = pytest.mark.parametrize("hook", [NATIVE])
MIB = 1 << 20
WEIGHTS = {f"layer {number}": torch.ones(MIB // 4) for number in range(3)}
PICKLED = pickle.dumps(WEIGHTS)
SAVED = io.BytesIO()
torch.save(WEIGHTS, SAVED)
OLD = torch.empty(0)
MADE = {"copied": "copy.deepcopy(WEIGHTS)", "made": "torch.UntypedStorage(4 * MIB)", "computed": "torch.ones(MIB)"}
TWICE = mtp.schedule(wait=0, warmup=0, active=1, repeat=2)


def resized(storage: torch.UntypedStorage, nbytes: int) -> torch.UntypedStorage:
    storage.resize_(nbytes)
    return storage


MAKERS: dict[str, Callable[[], Any]] = {
    "deepcopy": lambda: copy.deepcopy(WEIGHTS),
    "pickle.loads": lambda: pickle.loads(PICKLED),
    "torch.load": lambda: torch.load(io.BytesIO(SAVED.getvalue())),
    "UntypedStorage": lambda: torch.UntypedStorage(3 * MIB),
    "clone": lambda: WEIGHTS["layer 0"].untyped_storage().clone(),
    "resize": lambda: resized(torch.UntypedStorage(MIB), 3 * MIB),
    "resize of an older one": lambda: resized(OLD.untyped_storage(), 3 * MIB),
    "share_memory_": lambda: torch.ones(MIB).share_memory_().share_memory_(),
    "shared": lambda: torch.UntypedStorage._new_shared(3 * MIB),
    "shared views": lambda: torch.ones(MIB).share_memory_()[1:].view(-1),
    "mapped file": lambda: torch.UntypedStorage.from_file(__file__, shared=False, nbytes=1024),
    "numpy": lambda: torch.from_numpy(np.ones(MIB, np.float32)),
}


def recorded(hook: str, make: Callable[[], Any]) -> mtp.profile:
    with mtp.profile(hook=hook, profile_memory=True) as prof:
        kept = make()
        del kept
    return prof


@pytest.mark.parametrize("maker", MAKERS)
def test_blocks_are_those_that_torchs_own_profiler_sees(hook: str, maker: str) -> None:
    own, theirs = (recorded(name, MAKERS[maker]).trace.allocations for name in (hook, "kineto"))
    assert own is not None
    assert theirs is not None
    assert own.nbytes.tolist() == theirs.nbytes.tolist()
    assert own.total.tolist() == theirs.total.tolist()


def test_batches_of_worker_processes_are_held_until_they_are_released(hook: str) -> None:
    loader = torch.utils.data.DataLoader(torch.ones(4, MIB // 4), batch_size=2, num_workers=1)
    with mtp.profile(hook=hook, profile_memory=True) as prof:
        sizes = [batch.untyped_storage().nbytes() for batch in loader]
    records = prof.trace.allocations
    assert records is not None
    assert sizes == [2 * MIB, 2 * MIB]
    assert records.nbytes[np.abs(records.nbytes) >= MIB].tolist() in (
        [2 * MIB, -2 * MIB, 2 * MIB, -2 * MIB],
        [2 * MIB, 2 * MIB, -2 * MIB, -2 * MIB],
    )


def test_sharing_that_fails_holds_nothing_and_the_class_is_as_before(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room in /dev/shm")

    monkeypatch.setattr(torch.UntypedStorage, "_share_fd_cpu_", fail)
    before = dict(vars(torch.UntypedStorage))
    with mtp.profile(hook=hook, profile_memory=True) as prof:
        x = torch.ones(MIB)
        with pytest.raises(OSError, match="no room"):
            x.share_memory_()
    assert prof.trace.allocations is not None
    assert prof.trace.allocations.total.tolist() == [4 * MIB, 8 * MIB, 4 * MIB]
    assert dict(vars(torch.UntypedStorage)) == before


def test_the_peak_is_the_sum_of_the_storages(hook: str) -> None:
    with mtp.profile(hook=hook, profile_memory=True) as prof:
        kept = copy.deepcopy(WEIGHTS)
    held = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    assert held == 3 * MIB
    assert prof.trace.allocations is not None
    assert prof.trace.allocations.total[-1] == held
    # The copy of a tensor makes an empty one first, and looks at one number of it.
    assert held <= (peak_bytes(prof.trace) or 0) < held + 64


def test_a_storage_that_outlives_the_recording_is_freed_later(hook: str) -> None:
    with mtp.profile(hook=hook, profile_memory=True) as first:
        kept = torch.UntypedStorage(MIB)
    kept.resize_(2 * MIB)
    with mtp.profile(hook=hook, profile_memory=True) as second:
        kept.resize_(3 * MIB)
        del kept
    assert [prof.trace.allocations.nbytes.tolist() for prof in (first, second)] == [[MIB], [3 * MIB, -3 * MIB]]


def test_two_builds_of_the_recorder_may_end_in_any_order(hook: str, tmp_path: Path) -> None:
    found = recorder()
    assert found is not None
    builds = [found, import_binary(shutil.copy(str(found.__spec__.origin), tmp_path / "other.so"))]
    flags = {"with_inputs": False, "with_stacks": False, "with_memory": True, "with_ids": False}
    for order in (builds, builds[::-1]):
        for build in builds:
            assert build.start(**flags, max_events=100)
        first = torch.empty(10)
        ended = [np.frombuffer(order[0].stop()["block_nbytes"], np.int64).tolist()]
        second = torch.empty(20)
        ended.append(np.frombuffer(order[1].stop()["block_nbytes"], np.int64).tolist())
        torch.UntypedStorage(30)
        assert ended == [[40], [40, 80]]
        del first, second


def test_memory_outside_ops_belongs_to_the_line_that_allocated_it(hook: str, tmp_path: Path) -> None:
    with mtp.profile(hook=hook, profile_memory=True, with_stack=True, record_shapes=True) as prof:
        copied = copy.deepcopy(WEIGHTS)
        with mtp.record_function("load"):
            made = torch.UntypedStorage(4 * MIB)
        computed = torch.ones(MIB)
    prof.export_memory_timeline(tmp_path / "memory.json", "cpu")
    prof.save(tmp_path / "recording.mtprof")
    del copied, made, computed
    _, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert max(map(sum, sizes)) == peak_bytes(prof.trace) == 11 * MIB
    for one in (prof, mtp.load(tmp_path / "recording.mtprof")):
        by_source = {row.source.strip(): row for row in one.lines()}
        own, scoped, op = (by_source[f"{name} = {made_by}"] for name, made_by in MADE.items())
        # The copy of a tensor also makes an empty one, and looks at one number of it.
        assert 3 * MIB <= own.allocated_bytes < 3 * MIB + 64
        assert (scoped.allocated_bytes, scoped.memory_bytes, scoped.count) == (4 * MIB, 4 * MIB, 0)
        assert (op.allocated_bytes, op.count > 0) == (4 * MIB, True)
        largest = MemoryTab(Scene(one.trace)).first()["largest"]
        assert largest["value"]["nbytes"][:3] == [4 * MIB, 4 * MIB, MIB]
        assert largest["label"][:3] == ["load", "aten::empty", "outside any op"]
        assert all(Path(__file__).name in detail for detail in largest["detail"][:3])


def test_two_recordings_keep_the_lines_of_their_storages(hook: str) -> None:
    with mtp.profile(hook=hook, profile_memory=True, with_stack=True, acc_events=True, schedule=TWICE) as prof:
        for size in (1, 2):
            torch.UntypedStorage(size * MIB)
            prof.step()
    (line,) = (row for row in prof.lines() if row.allocated_bytes)
    assert (line.source.strip(), line.allocated_bytes) == ("torch.UntypedStorage(size * MIB)", 3 * MIB)
