"""Figures 1, continued: a `%%mtprofile` cell, whose lines are marked, beside the same cell under torch.profiler."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.figure import Figure, at_most
from benchmarks.programs import IN_CELL, PROGRAMS, Program
from benchmarks.recording import GROUP
from benchmarks.sampling import Sample, Scale, Way, cpu_clock, in_turns

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def figures(scale: Scale) -> list[Figure]:
    """Each program as a cell."""
    with shell() as ip:
        ip.run_line_magic("load_ext", "mtprof_nb")
        return [figure for program in (*PROGRAMS, IN_CELL) for figure in _cell_figures(ip, program, scale)]


def _cell_figures(ip: InteractiveShell, program: Program, scale: Scale) -> list[Figure]:
    import torch

    cell = f"began = clock()\n{program.source.strip()}\nended = clock()"
    names = program.namespace(program.steps(scale.steps))
    ip.user_ns.update(names, clock=cpu_clock)
    _run(ip, cell)
    if not _has_lines(ip, cell):
        return []
    ways: dict[str, Way] = {
        "unprofiled": partial(_run, ip, cell),
        "torch.profiler": partial(_run_under, torch.profiler.profile, ip, cell),
        "line marks": partial(_run, ip, f"%%mtprofile -q --hook kineto\n{cell}"),
    }
    rounds = in_turns(ways, scale, scale.share(0.025))
    title = f"{program.name}, line marks"
    return [
        rounds.figure(GROUP, f"{title}: kineto", "line marks", "torch.profiler", "run", bound=at_most(1.15)),
        rounds.figure(GROUP, f"{title}: kineto", "line marks", "unprofiled", "run"),
    ]


def _run(ip: InteractiveShell, cell: str) -> Sample:
    ip.run_cell(cell, store_history=False).raise_error()
    return {"run": ip.user_ns["ended"] - ip.user_ns["began"]}


def _run_under(make: Callable[[], Any], ip: InteractiveShell, cell: str) -> Sample:
    with make():
        return _run(ip, cell)


def _has_lines(ip: InteractiveShell, cell: str) -> bool:
    """Whether a profiled cell learns its lines from marks: without, there is nothing to measure here."""
    import mtprof_nb

    ip.run_cell(f"%%mtprofile -q --hook kineto\n{cell}", store_history=False).raise_error()
    prof = mtprof_nb.last()
    return prof is not None and prof.trace.line is not None


@contextmanager
def shell() -> Iterator[InteractiveShell]:
    """A shell that keeps no history."""
    from IPython.core.interactiveshell import InteractiveShell

    ip = InteractiveShell(colors="nocolor")
    ip.history_manager.enabled = False
    try:
        yield ip
    finally:
        atexit.unregister(ip.atexit_operations)
        ip.atexit_operations()
