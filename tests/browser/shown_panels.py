"""A notebook with panels of every kind, shown in a page of JupyterLab."""

from dataclasses import dataclass, field
from typing import Any

import drawn
from laboratory import Page

from mtprof_nb.views.panel.tabs import TABS

FULL, AGAIN, HOSTILE, BARE, EMPTY, LONG = range(6)
HOSTILE_NAME = "<img src=x onerror=window.harmed=1><script>window.harmed=1</script>"
SETUP = f"""
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.views.panel import show_panel as panel
from synthetic import training_run
from traces import event, make_trace

full = training_run(3_000)
long = training_run(400_000)
bare = make_trace([event("aten::mm", 0, 40_000), event("aten::add", 50_000, 60_000)], label="Cell [5]")
name = "{HOSTILE_NAME}"
hostile = make_trace(
    [
        event(name, 0, 900_000, line=(name, 1), stack=[(name, 1, name)], thread=1),
        event("aten::add", 1_000_000, 1_500_000, stack=[("b.py", 2, "g")], thread=1),
    ],
    allocations=[{{"time_ns": 5, "nbytes": 64, "event": 0}}],
    label=name,
)
"""
COUNT_PANELS = """
from ipywidgets.widgets.widget import _instances
from mtprof_nb.views.panel.widget import Panel
print(sum(isinstance(widget, Panel) for widget in _instances.values()))
"""
SHOWS = [
    "panel.show(full)",
    "panel.show(full)",
    "panel.show(hostile, status=name)",
    "panel.show(bare, limit=1)",
    "panel.show(empty_trace(label='Cell [6]'))",
    "panel.show(long)",
]
TITLES = tuple(kind.title for kind in TABS)


@dataclass
class Shown:
    """The page after all panels were shown, and the bytes that each brought."""

    page: Page
    nbytes: list[int] = field(default_factory=list)

    def panel(self, number: int = FULL) -> Any:
        return self.page.panel(number)

    def open(self, title: str, number: int = FULL) -> Any:
        """Brings a tab to the front; returns its body."""
        panel = self.panel(number)
        panel.get_by_role("tab", name=title).click()
        return panel.get_by_role("tabpanel")

    def timeline(self, number: int = FULL) -> Any:
        """The timeline of a panel, drawn, with everything in its window."""
        body = self.open("Timeline", number)
        drawn.wait_for(body, "shapes.some(({ bar }) => bar !== undefined)")
        body.get_by_role("button", name="Show the whole recording").click()
        return body


def labels(body: Any) -> list[str]:
    return body.locator(".mtprof-row .mtprof-label").all_inner_texts()
