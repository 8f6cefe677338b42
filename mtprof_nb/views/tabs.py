"""Which tabs a panel has. A new tab is one Python module, one ES module beside it, and one line here."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from mtprof_nb.views.scene import Scene, Tab


class TabKind(NamedTuple):
    """A tab's name (of its Python and its ES module), its title, and the class that answers for it."""

    name: str
    title: str
    factory: str

    def make(self, scene: Scene) -> Tab:
        """The tab of one panel."""
        tab: Tab = getattr(import_module(f"{__package__}.{self.name}"), self.factory)(scene)
        return tab


TABS = (
    TabKind("operators", "Operators", "OperatorsTab"),
    TabKind("timeline", "Timeline", "TimelineTab"),
    TabKind("stacks", "Stacks", "StacksTab"),
    TabKind("memory", "Memory", "MemoryTab"),
)
