"""The compiled module of hook `native`, called directly: its clock, its search for objects, and two of it at once."""

import ctypes
import gc
import shutil
import sys
import threading
import time
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest
import torch
from recording import NATIVE

import mtprof_nb as mtp
from mtprof_nb.capture.living_objects import living
from mtprof_nb.capture.native.recorder_loading import import_binary, recorder
from mtprof_nb.errors import MtprofWarning

pytestmark = pytest.mark.parametrize("hook", [NATIVE])
_NO_FLAGS = dict.fromkeys(("with_inputs", "with_stacks", "with_memory", "with_ids"), False)
#: By how much two readings of one moment may differ: both are read one after the other, on a machine that may be slow.
_TOLERANCE_NS = 5_000


def start(module: Any) -> None:
    module.start(**_NO_FLAGS, max_events=1_000_000)


def timed_ops(milliseconds: int) -> list[tuple[int, int]]:
    """Run ops for so long; the times of Python's clock before and after each."""
    x, found = torch.ones(2), [(0, time.perf_counter_ns())]
    until = found[0][1] + milliseconds * 1_000_000
    while found[-1][1] < until:
        before = time.perf_counter_ns()
        x.neg()
        found.append((before, time.perf_counter_ns()))
        if len(found) % 500 == 0:
            time.sleep(0.002)
    return found[1:]


def assert_same_clock(columns: dict[str, Any], timed: list[tuple[int, int]], thread: int) -> None:
    name = np.frombuffer(columns["name"], np.int32)
    here = (np.frombuffer(columns["thread"], np.int32) == thread) & (name == columns["names"].index("aten::neg"))
    start_ns, duration_ns = (np.frombuffer(columns[name], np.int64)[here] for name in ("start", "duration"))
    before, after = np.array(timed).T
    assert (start_ns >= before - _TOLERANCE_NS).all()
    assert (start_ns + duration_ns <= after + _TOLERANCE_NS).all()
    assert (np.diff(start_ns) >= 0).all()
    assert (start_ns[1:] >= (start_ns + duration_ns)[:-1]).all()


def test_times_are_those_of_pythons_clock_on_every_thread(hook: str) -> None:
    timed: dict[int, list[tuple[int, int]]] = {}

    def run() -> None:
        timed[threading.get_native_id()] = timed_ops(60)

    threads = [threading.Thread(target=run) for _ in range(2)]
    start(recorder())
    for thread in threads:
        thread.start()
    run()
    for thread in threads:
        thread.join()
    columns = recorder().stop()
    assert len(columns["threads"]) == 3
    for number, (native_id, *_) in enumerate(columns["threads"]):
        assert_same_clock(columns, timed[native_id], number)


def test_living_objects_are_those_that_the_garbage_collector_knows(hook: str) -> None:
    class Net(torch.nn.Linear):
        pass

    net = Net(2, 2)
    optimizer = torch.optim.SGD(net.parameters())
    gc.collect()
    classes = (torch.nn.Module, torch.optim.Optimizer)
    found = recorder().living(*classes)
    assert [sorted(map(id, objects)) for objects in found] == [sorted(map(id, objects)) for objects in living(*classes)]
    assert any(one is net for one in found[0])
    assert any(one is optimizer for one in found[1])


def test_searching_for_what_is_no_class_is_an_error(hook: str) -> None:
    with pytest.raises(TypeError, match="takes classes"):
        recorder().living(3)


def test_two_builds_of_the_recorder_in_one_process_share_nothing(hook: str, tmp_path: Path) -> None:
    own = recorder()
    other = import_binary(shutil.copy(own.__spec__.origin, tmp_path / "other.so"))
    x = torch.ones(1)
    start(own)
    x.neg()
    start(other)
    x.neg()
    both = [module.stop() for module in (own, other)]
    assert [len(columns["scope"]) for columns in both] == [2, 1]  # a byte an event


def test_where_memory_cannot_be_recorded_a_warning_says_so(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true_start = recorder().start
    monkeypatch.setattr(recorder(), "start", lambda **words: true_start(**words | {"with_memory": False}))
    prof = mtp.profile(hook=hook, profile_memory=True)
    with pytest.warns(MtprofWarning, match="another CPU allocator is in use"):
        prof.start()
    prof.stop()


def _bytes_of(code: CodeType, references: int) -> bytes:
    """The memory of a code object, with another number of references."""
    raw = ctypes.string_at(id(code), sys.getsizeof(code))
    return references.to_bytes(8, sys.byteorder) + raw[8:]


@pytest.mark.skipif(sys.platform != "linux", reason="the C library gives the memory that was freed last first")
def test_memory_of_code_that_is_gone_is_not_counted_as_code(hook: str) -> None:
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    text = "def gone(x):\n" + "    x = x.neg()\n" * 12 + "    return x"
    x, interval, blocks = torch.ones(2), sys.getswitchinterval(), []
    recorder().start(**_NO_FLAGS | {"with_stacks": True}, max_events=1_000_000)
    sys.setswitchinterval(60)  # until this thread sleeps, no other one runs Python
    try:
        for _ in range(50):
            namespace: dict[str, Any] = {}
            exec(compile(text, "<gone>", "exec"), namespace)
            gone = namespace.pop("gone")
            code = gone.__code__
            address, size, likeness = id(code), sys.getsizeof(code), _bytes_of(code, references=5)
            kept = (code.co_filename, code.co_name, code.co_linetable)
            assert 512 < size <= 1024, "the C library's own, and among the memory that it gives again at once"
            gone(x)
            del code, gone
            blocks += [library.malloc(size) for _ in range(20)]
            if address in blocks:
                ctypes.memmove(address, likeness, size)
                time.sleep(0.05)  # the recorder holds what it has met
                assert ctypes.string_at(address, size) == likeness
                break
        else:
            pytest.skip("the C library gives other memory")
    finally:
        sys.setswitchinterval(interval)
        recorder().stop()
        for block in blocks:
            library.free(block)
    assert kept
