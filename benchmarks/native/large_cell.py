"""A cell of a million events with every flag: from its end to the panel, and the memory that it takes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import mtprof_nb
from benchmarks import child, memory
from benchmarks.figure import Figure, Spread, at_most
from benchmarks.marks import shell
from benchmarks.native.running import GROUP
from benchmarks.native.stopping import EVENTS_A_STEP
from benchmarks.panel import sent_bytes
from benchmarks.programs import MLP, SMALL_OPS, Program
from benchmarks.sampling import Sample, Scale, Way, cpu_clock, in_turns

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: Programs, and the events of one of their steps.
_PROGRAMS = {MLP.name: (MLP, EVENTS_A_STEP), SMALL_OPS.name: (SMALL_OPS, 5)}


def figures(scale: Scale) -> list[Figure]:
    """Each program as a cell."""
    return [figure for name in _PROGRAMS for figure in _cell_figures(name, scale)]


def _cell_figures(name: str, scale: Scale) -> list[Figure]:
    function = "benchmarks.native.large_cell:measure"
    ways: dict[str, Way] = {
        "unprofiled": partial(child.call, function, name, scale.cell_events, False),
        "native": partial(child.call, function, name, scale.cell_events, True),
    }
    rounds = in_turns(ways, replace(scale, least_rounds=max(scale.least_rounds - 1, 1)), 0)
    seconds, stop = Spread.of(rounds.values("native", "panel")), rounds.median("native", "stop")
    title = f"cell of {name}, all, {rounds.median('native', 'events'):,.0f} events"
    behind = f"{stop:.2f} s until its profile is there; sends {rounds.median('native', 'sent') / 1000:,.0f} kB"
    found = [
        Figure(GROUP, f"{title}: end to panel", "", seconds, len(rounds), unit="s", bound=at_most(3), behind=behind)
    ]
    if memory.is_known():
        pairs = zip(rounds.values("native", "peak"), rounds.values("unprofiled", "peak"), strict=True)
        more = Spread.of([(peak - plain) / 1e6 for peak, plain in pairs])
        found.append(
            Figure(GROUP, f"{title}: more memory at its peak", "", more, len(rounds), unit="MB", bound=at_most(1000))
        )
    return found


def measure(name: str, events: int, is_profiled: bool) -> Sample:
    """Seconds from the end of the cell to its profile and to the panel, and the peak of this process's memory."""
    program, events_a_step = _PROGRAMS[name]
    with shell() as ip, sent_bytes() as sent:
        ip.run_line_magic("load_ext", "mtprof_nb")
        ip.user_ns.update(program.namespace(3), clock=cpu_clock)
        _run_and_show(ip, program, is_profiled)
        ip.user_ns.update(steps=max(events // events_a_step, 1))
        before = sent()
        found = _run_and_show(ip, program, is_profiled)
        found["sent"] = sent() - before
    return found | ({"peak": memory.peak()} if memory.is_known() else {})


def _run_and_show(ip: InteractiveShell, program: Program, is_profiled: bool) -> Sample:
    """Run the cell, and make the widget that a notebook would show: it holds all that is sent first."""
    from mtprof_nb.views.panel.show_panel import panel

    cell = f"{program.source.strip()}\nended = clock()"
    ip.run_cell(f"%%mtprofile -q --all --hook native\n{cell}" if is_profiled else cell).raise_error()
    if not is_profiled:
        return {}
    stopped, prof = cpu_clock(), mtprof_nb.last()
    assert prof is not None
    panel(prof.trace).close()
    ended = ip.user_ns["ended"]
    return {"stop": stopped - ended, "panel": cpu_clock() - ended, "events": len(prof.trace)}
