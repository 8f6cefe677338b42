"""Processes that end, fork or are killed while the native recorder records: they end as they would without it."""

import os
import signal
import subprocess
import sys

import pytest
from recording import EVERY_FLAG, NATIVE

pytest.importorskip("torch")

pytestmark = [
    pytest.mark.parametrize("hook", [NATIVE]),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]

#: What every program begins with. `in_child` runs a function in a forked child that records, and returns its status.
_BEGINNING = """
import ctypes, os, signal, sys, threading, time
import torch
import mtprof_nb as mtp
x = torch.ones(4)

def fresh(number):
    names = {{}}
    exec(compile("def made(x):\\n    return x + 1", f"<made {{number}}>", "exec"), names)
    return names["made"](x)

def recording():
    prof = mtp.profile(hook="native", **{flags!r})
    prof.start()
    fresh(0)
    return prof

def in_child(function):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a child that hangs ends with another status
        recording()
        function()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def output_of(program: str) -> tuple[str, str]:
    """The output of a program, and its errors."""
    text = _BEGINNING.format(flags=EVERY_FLAG) + program
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text]  # Python 3.12 warns of every fork
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return ended.stdout.strip(), ended.stderr.strip()


def test_a_process_that_ends_while_it_is_recorded_has_its_own_status(hook: str) -> None:
    program = """
def asleep():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(0.02)  # some samples are taken
    sys.exit(3)

def in_thread():
    thread = threading.Thread(target=lambda: os._exit(5))
    thread.start()
    thread.join()

def in_backward():
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda gradient: os._exit(6))
    w.sum().backward()

def killed():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

ends = [lambda: sys.exit(2), asleep, lambda: os._exit(4), in_thread, in_backward, killed]
print([in_child(end) for end in ends])
"""
    assert output_of(program) == (str([2, 3, 4, 5, 6, -signal.SIGTERM]), "")


def test_a_child_that_c_code_forks_runs_ops_which_are_not_recorded(hook: str) -> None:
    # Python does not learn of such a child, so that nothing of it ends the recording there.
    program = """
def forked():
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        signal.alarm(30)
        fresh(1)
    return child

def ended(child):
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

class Forking(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        children.append(forked())
        return gradient.neg()

prof = recording()
children = [forked()]
statuses = [ended(children[0])]
Forking.apply(torch.ones(4, requires_grad=True)).sum().backward()  # forks inside an op, which ends in both
statuses.append(ended(children[1]))
prof.stop()
names = [event.name for event in prof.events()]
print(statuses, names.count("aten::add"), names.count("aten::neg"))
"""
    assert output_of(program) == ("[7, 7] 1 1", "")


def test_a_forked_child_can_record_again_and_has_each_op_once(hook: str) -> None:
    program = """
prof = recording()
child = os.fork()
if child == 0:
    again = mtp.profile(hook="native")
    for _ in range(2):
        with again:
            x.neg()
        print([event.name for event in again.events()], flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    # The callback of its parent's recording is still installed there: another thread may have held torch's lock.
    assert output_of(program) == ("\n".join(["['aten::neg']"] * 2), "")


@pytest.mark.skipif(sys.platform != "linux", reason="needs pthread_exit of glibc")
def test_a_thread_that_ends_inside_a_scope_leaves_the_recording_whole(hook: str) -> None:
    program = """
ended = threading.Event()

def end_thread():
    with mtp.record_function("left"):
        fresh(1)
        ended.set()
        ctypes.CDLL(None).pthread_exit(None)

prof = recording()
threading.Thread(target=end_thread, daemon=True).start()
ended.wait()
time.sleep(0.05)
fresh(2)
prof.stop()
names = [event.name for event in prof.events()]
print(names.count("aten::add"), names.count("left"), flush=True)
os._exit(0)  # Python waits for the thread otherwise
"""
    assert output_of(program) == ("3 1", "")


def test_signals_that_arrive_all_the_time_are_handled_and_lose_no_op(hook: str) -> None:
    program = """
arrived = []
signal.signal(signal.SIGALRM, lambda *_: arrived.append(fresh(-1)))
prof = recording()
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for number in range(500):
    fresh(number)
while len(arrived) < 20:
    x.neg()
signal.setitimer(signal.ITIMER_REAL, 0)
prof.stop()
names = [event.name for event in prof.events()]
print(names.count("aten::add") == 1 + 500 + len(arrived))
"""
    assert output_of(program) == ("True", "")
