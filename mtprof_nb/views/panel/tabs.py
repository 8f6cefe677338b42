"""The tabs of a panel. A new tab is a Python module, an ES module in `views/web`, and a line here."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

from mtprof_nb.analysis.functions.sampled_lines import outside_by_line
from mtprof_nb.analysis.stacks.calltree import has_frames
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.views.scene import Scene, Tab


class TabKind(NamedTuple):
    """A tab: its name, which is also its ES module's, its title, and its class ("module:class")."""

    name: str
    title: str
    factory: str
    #: With more events than this, it is computed when it is first opened, and not before the panel is shown.
    eager_events: int = 300_000

    def make(self, scene: Scene) -> Tab:
        module, _, name = self.factory.partition(":")
        tab: Tab = getattr(import_module(module), name)(scene)
        return tab


TABS = (
    TabKind("summary", "Overview", "mtprof_nb.views.tables.summary_tab:SummaryTab", 1_000_000),
    TabKind("operators", "Operators", "mtprof_nb.views.tables.operators_tab:OperatorsTab", sys.maxsize),
    TabKind("lines", "Lines", "mtprof_nb.views.tables.lines_tab:LinesTab", 1_000_000),
    TabKind("steps", "Steps", "mtprof_nb.views.charts.steps_tab:StepsTab", 1_000_000),
    TabKind("timeline", "Timeline", "mtprof_nb.views.charts.timeline_tab:TimelineTab", 2_000_000),
    TabKind("stacks", "Stacks", "mtprof_nb.views.charts.stack_charts:StacksTab", 2_000_000),
    TabKind("memory", "Memory", "mtprof_nb.views.charts.memory_chart:MemoryTab"),
)
#: The tab of a recording of several processes, behind the overview.
RANKS = TabKind("ranks", "Ranks", "mtprof_nb.views.tables.ranks_tab:RanksTab", sys.maxsize)
WITH_RANKS = (TABS[0], RANKS, *TABS[1:])
#: The tabs of a comparison.
COMPARING = (
    TabKind("differences", "Differences", "mtprof_nb.views.comparison.differences_tab:DifferencesTab", sys.maxsize),
    TabKind("side_by_side", "Changed lines", "mtprof_nb.views.comparison.side_by_side_tab:SideBySideTab"),
    TabKind("two_timelines", "Two timelines", "mtprof_nb.views.comparison.two_timelines_tab:TwoTimelinesTab"),
)
ALL_TABS = (*WITH_RANKS, *COMPARING)


def tabs_of(scene: Scene) -> tuple[TabKind, ...]:
    """The tabs of a panel: without events those of lines and stacks that ran without an op; then those that compare.

    Steps have a tab if the program marked them, and ranks if there are several processes.
    """
    comparing = COMPARING if scene.against is not None else ()
    if len(scene.trace):
        if len(scene.trace.processes) > 1:
            return (*(kind for kind in WITH_RANKS if kind.name != "steps"), *comparing)
        return (*(kind for kind in TABS if kind.name != "steps" or has_steps(scene.trace)), *comparing)
    is_there = {"lines": outside_by_line(scene.trace), "stacks": has_frames(scene.trace)}
    return (*(kind for kind in TABS if is_there.get(kind.name)), *comparing)
