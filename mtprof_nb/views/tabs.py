"""Which tabs a panel has. A new tab is one Python module, one ES module beside it, and one line here."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

from mtprof_nb.views.scene import Scene, Tab


class TabKind(NamedTuple):
    """A tab's name (of its Python and its ES module), its title, and the class that answers for it."""

    name: str
    title: str
    factory: str
    #: With more events than this it is worked out when it is first opened, and not before the panel is shown.
    eager_events: int = 300_000

    def make(self, scene: Scene) -> Tab:
        """The tab of one panel."""
        tab: Tab = getattr(import_module(f"{__package__}.{self.name}"), self.factory)(scene)
        return tab


TABS = (
    TabKind("operators", "Operators", "OperatorsTab", sys.maxsize),
    TabKind("lines", "Lines", "LinesTab", 1_000_000),
    TabKind("timeline", "Timeline", "TimelineTab", 2_000_000),
    TabKind("stacks", "Stacks", "StacksTab", 2_000_000),
    TabKind("memory", "Memory", "MemoryTab"),
)
