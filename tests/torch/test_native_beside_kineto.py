"""Hook `native` records what hook `kineto` records; where they differ, who is right and why."""

from collections.abc import Callable
from typing import Any

import pytest
from compared_hooks import facts, marked_program, recorded, run_text
from marked_programs import PROGRAMS as MARKED_PROGRAMS
from recording import EVERY_FLAG, NATIVE

import mtprof_nb as mtp
from benchmarks.programs import IN_CELL, PROGRAMS, Program

pytest.importorskip("torch")
from unusual_programs import PROGRAMS as UNUSUAL_PROGRAMS

pytestmark = [
    pytest.mark.parametrize("hook", [NATIVE]),
    pytest.mark.filterwarnings("ignore::mtprof_nb.errors.MtprofWarning"),
]

#: Their order depends on the threads, and their source on the file of the cell.
_NOT_REPEATABLE = ("threads", "its own source")
#: Facts that Kineto has wrong.
_KINETO_IS_WRONG = {
    # With shapes it keeps tensors that `torch.func` wraps until the recording ends.
    **{name: {"memory"} for name in ("vmap", "grad", "jacrev")},
    # It adds a call of `handle_torch_function`, which C++ does without: `traceback.print_stack()` has none either.
    "a tensor without repr": {"stack"},
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
    assert found.keys() == expected.keys()
    for column in expected.keys() - _KINETO_IS_WRONG.get(name, set()):
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
