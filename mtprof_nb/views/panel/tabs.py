"""The tabs of a panel. A new tab is a folder in `views/tabs`, and a line here."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

from mtprof_nb.analysis.functions.sampled_lines import outside_by_line
from mtprof_nb.analysis.stacks.calltree import has_frames
from mtprof_nb.analysis.summary import has_steps
from mtprof_nb.views.scene import Scene, Tab


class TabKind(NamedTuple):
    """A tab: its name, which is that of its folder in `views/tabs` and of its ES module, and its title."""

    name: str
    title: str
    #: With more events than this, it is computed when it is first opened, and not before the panel is shown.
    eager_events: int = 300_000

    def make(self, scene: Scene) -> Tab:
        """The tab of a panel: for the name `side_by_side`, `SideBySideTab` in `side_by_side_tab.py`."""
        module = import_module(f"mtprof_nb.views.tabs.{self.name}.{self.name}_tab")
        tab: Tab = getattr(module, f"{self.name.title().replace('_', '')}Tab")(scene)
        return tab


TABS = (
    TabKind("summary", "Overview", 1_000_000),
    TabKind("operators", "Operators", sys.maxsize),
    TabKind("lines", "Lines", 1_000_000),
    TabKind("steps", "Steps", 1_000_000),
    TabKind("timeline", "Timeline", 2_000_000),
    TabKind("stacks", "Stacks", 2_000_000),
    TabKind("memory", "Memory"),
)
#: The tab of a recording of several processes, behind the overview.
RANKS = TabKind("ranks", "Ranks", sys.maxsize)
WITH_RANKS = (TABS[0], RANKS, *TABS[1:])
#: The tabs of a comparison.
COMPARING = (
    TabKind("differences", "Differences", sys.maxsize),
    TabKind("side_by_side", "Changed lines"),
    TabKind("two_timelines", "Two timelines"),
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
