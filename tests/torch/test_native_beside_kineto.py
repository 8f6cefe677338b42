"""Hook `native` records what hook `kineto` records; where they differ, who is right and why."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compared_hooks import facts, marked_program, recorded, run_text
from marked_programs import PROGRAMS as MARKED_PROGRAMS
from recording import EVERY_FLAG, NATIVE

import mtprof_nb as mtp
from benchmarks.programs import IN_CELL, PROGRAMS, Program

pytest.importorskip("torch")
import torch
from unusual_programs import PROGRAMS as UNUSUAL_PROGRAMS

pytestmark = [
    pytest.mark.parametrize("hook", [NATIVE]),
    pytest.mark.filterwarnings("ignore::mtprof_nb.errors.MtprofWarning"),
]

#: Their order depends on the threads, and their source on the file of the cell.
_NOT_REPEATABLE = ("threads", "its own source")
#: Facts that hook `kineto` has in part: lines of `def`, modules by their classes, names of few parameters.
_IN_PART = {"stack", "module", "parameter"}
#: Facts that Kineto has wrong.
_KINETO_IS_WRONG = {
    # With shapes it keeps tensors that `torch.func` wraps until the recording ends.
    **{name: {"memory"} for name in ("vmap", "grad", "jacrev")},
    # It adds a call of `handle_torch_function`, which C++ does without: `traceback.print_stack()` has none either.
    "a tensor without repr": {"stack"},
    # With torch 2.15 on Python 3.12 it repeats a frame of `FakeTensorMode.dispatch`, which does not call itself.
    "fake": {"stack"},
    # Its file has complex numbers as texts.
    "values that vary": {"values"},
}


def _benchmark(program: Program) -> Callable[[], None]:
    names = program.namespace(2)
    return lambda: run_text(program.source, **names)


def _programs() -> dict[str, Callable[[], Callable[[], Any]]]:
    marked = {name: (lambda name=name: marked_program(name)) for name in MARKED_PROGRAMS if name not in _NOT_REPEATABLE}
    unusual = {name: (lambda run=run: run) for name, (run, _) in UNUSUAL_PROGRAMS.items()}
    benchmarks = {one.name: (lambda one=one: _benchmark(one)) for one in (*PROGRAMS, IN_CELL)}
    return marked | unusual | benchmarks


_PROGRAMS = _programs()


def assert_same_facts(name: str, hook: str, **flags: bool) -> tuple[mtp.profile, mtp.profile]:
    make = _PROGRAMS[name]
    make()()  # what torch does once, it does here
    kinetos, ours = recorded(make(), "kineto", **flags), recorded(make(), hook, **flags)
    expected, found = facts(kinetos), facts(ours)
    assert found.keys() - _IN_PART == expected.keys() - _IN_PART
    for column in expected.keys() - _IN_PART - _KINETO_IS_WRONG.get(name, set()):
        assert found[column] == expected[column], column
    return kinetos, ours


@pytest.mark.parametrize("name", _PROGRAMS)
def test_every_fact_of_every_program_is_kinetos(name: str, hook: str) -> None:
    kinetos, ours = assert_same_facts(name, hook, **EVERY_FLAG)
    held = [prof.trace.allocations.total.tolist()[-1:] for prof in (kinetos, ours)]
    if "memory" not in _KINETO_IS_WRONG.get(name, ()):
        assert held[0] == held[1]
        assert kinetos.trace.allocations.total.max(initial=0) == ours.trace.allocations.total.max(initial=0)


@pytest.mark.parametrize("name", [*UNUSUAL_PROGRAMS, *(one.name for one in PROGRAMS)])
def test_without_flags_rows_and_links_are_kinetos(name: str, hook: str) -> None:
    assert_same_facts(name, hook)


@pytest.mark.parametrize("name", ["vmap", "grad", "jacrev"])
def test_tensors_that_torch_func_wraps_are_freed_which_kineto_keeps(name: str, hook: str) -> None:
    run, _ = UNUSUAL_PROGRAMS[name]
    flags = {"profile_memory": True, "record_shapes": True}
    assert recorded(run, hook, **flags).trace.allocations.total[-1] == 0
    assert recorded(run, "kineto", **flags).trace.allocations.total[-1] > 0


#: The program of both processes: collectives, and how a process joins the group.
_COLLECTIVES = """
from datetime import timedelta
import torch
from torch import distributed

def run():
    x, found = torch.ones(6), [torch.empty(6), torch.empty(6)]
    distributed.all_reduce(x)
    distributed.all_gather(found, x)
    distributed.broadcast(torch.ones(3, dtype=torch.int64), 0)
    distributed.barrier()

def join(rank, path):
    wait = timedelta(seconds=60)
    distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2, timeout=wait)
"""


def test_collectives_of_two_processes_are_kinetos(hook: str, tmp_path: Path) -> None:
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_gloo_available()):
        pytest.skip("this build of PyTorch has no gloo")
    path = str(tmp_path / "store")
    child = f"{_COLLECTIVES}\njoin(1, {path!r})\nfor _ in range(3):\n    run()"
    here: dict[str, Any] = {}
    exec(_COLLECTIVES, here)
    with subprocess.Popen([sys.executable, "-c", child]) as other:
        try:
            here["join"](0, path)
            here["run"]()
            expected, found = (facts(recorded(here["run"], one, record_shapes=True)) for one in ("kineto", hook))
        finally:
            if distributed.is_initialized():
                distributed.destroy_process_group()
            other.kill()
    # The number of a thread depends on which one began first. Gloo tells facts such as group and bytes to no profiler.
    # Kineto's file does not tell that a scope ends on another thread, nor parameters.
    in_part = ("track", "is_async", "parent", "parameter")
    assert {**found, **dict.fromkeys(in_part)} == {**expected, **dict.fromkeys(in_part)}
    shapes = {name: shape for name, shape in zip(found["name"], found["shapes"], strict=True) if name[:5] == "gloo:"}
    assert shapes == {
        "gloo:all_reduce": ((6,),),
        "gloo:all_gather": ((6,),),
        "gloo:broadcast": ((3,),),
        "gloo:barrier": None,
    }


def test_windows_of_a_schedule_are_kinetos(hook: str) -> None:
    def windows(one: str) -> list[list[str]]:
        found: list[list[str]] = []
        plan = mtp.schedule(wait=1, warmup=1, active=2, repeat=2)
        with mtp.profile(
            hook=one, schedule=plan, on_trace_ready=lambda prof: found.append(facts(prof)["name"])
        ) as prof:
            for number in range(9):
                torch.ones(number + 1).exp()
                prof.step()
        return found

    assert windows(hook) == windows("kineto")


def test_what_is_switched_off_is_left_out_as_by_kineto(hook: str) -> None:
    def counted(one: str) -> list[int]:
        with mtp.profile(hook=one) as prof:
            torch.ones(1)
            prof.toggle_collection_dynamic(False, [mtp.ProfilerActivity.CPU])
            torch.zeros(1)
            prof.toggle_collection_dynamic(True, [mtp.ProfilerActivity.CPU])
            torch.full((1,), 2.0)
        names = facts(prof)["name"]
        return [names.count(f"aten::{name}") for name in ("ones", "zeros", "full")]

    assert counted(hook) == counted("kineto") == [1, 0, 1]
