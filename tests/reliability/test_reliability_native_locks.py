"""The recorder does not wait for the GIL on the path of an op: whoever holds the GIL may wait for that op."""

import subprocess
import sys
from pathlib import Path

import pytest

from mtprof_nb.capture.native.compiler import find_compiler, include_folders
from mtprof_nb.capture.native.recorder_key import key_of_installed_torch
from mtprof_nb.capture.native.recorder_loading import recorder

pytest.importorskip("torch")

#: A library of the user, with a mutex: one thread runs a scope under it, another one waits for it and holds the GIL.
LIBRARY = """
#include <ATen/record_function.h>
#include <atomic>
#include <mutex>

static std::mutex mutex;
static std::atomic<int> stage{0};

extern "C" void run_scope_under_mutex() {
  std::lock_guard<std::mutex> held(mutex);
  stage = 1;
  while (stage != 2) {
  }
  at::RecordFunction scope(at::RecordScope::USER_SCOPE);
  scope.before("under the mutex");
}

extern "C" void wait_for_mutex() {
  while (stage != 1) {
  }
  stage = 2;
  std::lock_guard<std::mutex> held(mutex);
}
"""

PROGRAM = """
import ctypes, sys, threading, torch
import mtprof_nb as mtp

path = sys.argv[1]
without_gil, with_gil = ctypes.CDLL(path), ctypes.PyDLL(path)

def never_seen_before():
    without_gil.run_scope_under_mutex()

with mtp.profile(hook="native", with_stack=True, with_python=True) as prof:
    thread = threading.Thread(target=never_seen_before)
    thread.start()
    with_gil.wait_for_mutex()
    thread.join()

trace = prof.trace
event = trace.names.index("under the mutex")
(stack,) = trace.stack[trace.name == event].tolist()
print([frame.function for frame in trace.stacks.stack(stack)])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = key_of_installed_torch()
    if recorder() is None or key is None:
        pytest.skip("the native recorder is not built")
    folder = tmp_path_factory.mktemp("library")
    source, target = folder / "locked.cpp", folder / "locked.so"
    source.write_text(LIBRARY)
    folders = [f"-I{each}" for each in include_folders(key)]
    linked = [f"-L{key.torch / 'lib'}", "-lc10", "-ltorch_cpu"]
    flags = ["-std=c++20", "-O0", "-fPIC", "-shared", "-DNDEBUG"]
    subprocess.run([*find_compiler(), *flags, *folders, str(source), "-o", str(target), *linked], check=True)
    return target


def test_a_thread_that_holds_the_gil_may_wait_for_an_op_of_new_code(library: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(library)]
    done = subprocess.run(program, timeout=300, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "['never_seen_before']"
