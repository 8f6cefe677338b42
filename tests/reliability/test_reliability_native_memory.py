"""Memory that ends while hook `native` records, and the memory that it takes for threads and after its limit."""

import ctypes
import gc
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import NATIVE
from reliability_cases import assert_next_profile_is_complete

import mtprof_nb as mtp
from mtprof_nb.capture.native.compiler import find_compiler
from mtprof_nb.capture.native.recorder_loading import recorder
from mtprof_nb.errors import BuildError, MtprofWarning

pytest.importorskip("torch")
import torch

pytestmark = [
    pytest.mark.parametrize("hook", [NATIVE]),
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's"),
]
_FOLDER = Path(__file__).parent / "failing_memory"
_NO_FLAGS = dict.fromkeys(("with_inputs", "with_stacks", "with_memory", "with_ids"), False)


@pytest.fixture(scope="module")
def failing_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that lets allocations fail."""
    target = tmp_path_factory.mktemp("failing") / "failing_memory.so"
    try:
        compiler = find_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    options = shlex.split(f"-O1 -shared -fPIC -std=c++17 -I{sysconfig.get_path('include')}")
    source = _FOLDER / "failing_memory.cpp"
    subprocess.run([*compiler, *options, str(source), "-o", str(target)], check=True)
    return target


def lines_of(name: str, *arguments: object, **environment: str) -> list[str]:
    """Run a program of `failing_memory` and return what it prints; it must end as it should."""
    command = [sys.executable, "-X", "faulthandler", str(_FOLDER / name), *map(str, arguments)]
    # The C library stops at damage of its memory that it sees.
    environment = os.environ | {"MALLOC_CHECK_": "3", "PYTHONWARNINGS": "ignore"} | environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Error" not in done.stderr
    return done.stdout.splitlines()


def test_no_allocation_that_fails_harms_the_program_or_the_recording(hook: str, failing_memory: Path) -> None:
    parts = ["ops", "stop", "start", "so_far", "living", "op_cost", "sampler"]
    found = lines_of("failing_program.py", failing_memory, *parts, LD_PRELOAD=str(failing_memory))
    counts = dict(line.split() for line in found)
    assert list(counts) == parts
    assert all(int(count) > 10 for count in counts.values()), counts


def test_of_a_recording_without_memory_the_first_part_is_kept_and_says_so(hook: str) -> None:
    found = lines_of("limited_program.py", 4, 8, 24, 40, 60, 100, 250)
    assert found[:6] == ["cut"] * 6
    assert set(found[6:]) <= {"cut", "whole"}  # what the recorder itself gives back may be enough to read it


def test_of_a_recording_that_would_take_more_memory_than_there_is_the_first_part_is_read(hook: str) -> None:
    recorder().start(**_NO_FLAGS, max_events=1_000_000)
    for _ in range(1000):
        torch.ones(2)
    columns = recorder().stop(100_000)
    kept = len(columns["start"]) // 8
    assert 250 < kept <= 500
    assert columns["dropped"] == 3 * 1000 - kept
    assert columns["is_out_of_memory"]


def test_a_recording_takes_at_most_half_of_the_memory_that_is_left(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtprof_nb.capture.native.native_hook.available_bytes", lambda: 0)
    monkeypatch.setattr("mtprof_nb.capture.native.native_hook.TAKEN_ANYWAY", 2 * 64 * 50)
    prof = mtp.profile(hook=hook)
    prof.start()
    for _ in range(200):
        torch.ones(2).neg()
    with pytest.warns(MtprofWarning, match="there was not enough memory"):
        prof.stop()
    assert len(prof.trace) == 50
    assert prof.trace.unrecorded[0].reason.startswith("there was not enough memory")


def test_samples_that_cannot_be_read_do_not_take_the_ops_with_them(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_raw: object) -> None:
        raise MemoryError

    monkeypatch.setattr("mtprof_nb.capture.native.native_sampler._read", fail)
    prof = mtp.profile(hook=hook, with_python=True)
    with pytest.warns(MtprofWarning, match="the samples of Python code are lost"), prof:
        torch.ones(2).neg()
    assert [event.name for event in prof.events()].count("aten::neg") == 1


class NoMemory:
    """A recorder that has no memory to read its recording."""

    def __getattr__(self, name: str) -> Any:
        return getattr(recorder(), name)

    def stop(self, available: int) -> Any:
        recorder().stop(available)
        raise MemoryError


@pytest.fixture
def out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtprof_nb.capture.native.native_hook.recorder", NoMemory)


@pytest.mark.usefixtures("out_of_memory")
def test_a_lost_recording_is_a_memory_error_with_the_remedy(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prof = mtp.profile(hook=hook)
    prof.start()
    torch.ones(1)
    expected = r"the recording, which is lost: free memory, or record less \(a schedule, a smaller max_events"
    with pytest.raises(MemoryError, match=expected):
        prof.stop()
    assert mtp.active() is None
    monkeypatch.undo()
    assert_next_profile_is_complete(hook=hook)


@pytest.mark.usefixtures("out_of_memory")
def test_a_lost_recording_does_not_mask_the_users_exception(hook: str) -> None:
    @mtp.profile(hook=hook)
    def fail() -> None:
        torch.ones(1)
        raise ZeroDivisionError

    expected = "the profiler could not finish: there is not enough memory"
    with pytest.warns(MtprofWarning, match=expected), pytest.raises(ZeroDivisionError):
        fail()
    assert mtp.active() is None


def _run_threads(count: int, run: Callable[[], object]) -> None:
    for _ in range(count):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()


class _Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "a", "b", "c", "mapped", "d", "e", "used", "f", "g")]


def _used_bytes() -> int:
    """The bytes that the C library has given out."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("the C library does not tell its heap's size")
    library.mallinfo2.restype = _Heap
    gc.collect()
    heap = library.mallinfo2()
    return int(heap.used + heap.mapped)


def test_a_thread_that_has_ended_leaves_little_more_than_its_events(hook: str) -> None:
    def run() -> None:
        torch.ones(2).neg()

    count, flags = 300, dict.fromkeys(_NO_FLAGS, True)
    recorder().start(**flags, max_events=1_000_000)
    _run_threads(20, run)
    before = _used_bytes()
    _run_threads(count, run)
    left = (_used_bytes() - before) / count
    columns = recorder().stop()
    assert len(columns["threads"]) == count + 20
    assert left < 4_000


def test_nothing_is_kept_after_the_limit(hook: str) -> None:
    recorder().start(**_NO_FLAGS, max_events=100)
    for _ in range(300):
        torch.ones(2)
    for number in range(50):
        with torch.profiler.record_function(f"after the limit {number}"):
            pass
    _run_threads(5, lambda: torch.ones(2))
    columns = recorder().stop()
    assert not [name for name in columns["names"] if "limit" in name]
    assert len(columns["threads"]) == 1
    assert len(columns["start"]) // 8 == 100
    assert columns["dropped"] == 3 * 300 + 50 + 3 * 5 - 100
    assert not columns["is_out_of_memory"]
