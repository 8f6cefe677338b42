"""Shows a comparison under its cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtprof_nb.comparison.compared import Compared
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.views.comparison.comparison_html import comparison_bundle
from mtprof_nb.views.comparison.comparison_strip import comparison_strip
from mtprof_nb.views.frontend import is_unattended, running_shell
from mtprof_nb.views.panel.show_panel import show_once
from mtprof_nb.views.panel.tabs import COMPARING
from mtprof_nb.views.scene import Scene

if TYPE_CHECKING:
    from mtprof_nb.views.panel.widget import Panel


def show(compared: Compared, limit: int | None = None) -> Panel | None:
    """Display the comparison, and return its panel, as `show_panel.show` does for a recording."""
    return show_once(lambda: comparison_bundle(compared, limit), lambda: panel(compared, limit))


def show_value(compared: Compared) -> None:
    """Display a comparison that is the value of a cell.

    `NotImplementedError`, which IPython expects, where a mime bundle is displayed instead.
    """
    shell = running_shell()
    if not hasattr(shell, "kernel") or is_unattended(shell):
        raise NotImplementedError
    show(compared)


def panel(compared: Compared, limit: int | None = None) -> Panel:
    """The comparison as a widget. It renders also as HTML, Markdown and text."""
    from mtprof_nb.views.panel.widget import ComparingPanel

    return ComparingPanel(
        comparison_scene(compared, limit),
        [kind.name for kind in COMPARING],
        comparison_strip(compared),
        comparison_bundle(compared, limit),
    )


def comparison_scene(compared: Compared, limit: int | None = None) -> Scene:
    """The scene of the tabs that compare."""
    runs = compared.sides.b.runs
    return Scene(runs[0] if runs else empty_trace(), limit=limit, against=compared)
