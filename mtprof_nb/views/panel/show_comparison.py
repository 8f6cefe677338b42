"""Shows a comparison under its cell."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mtprof_nb.comparison.findings import Findings
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.views.comparison.comparison_html import comparison_bundle
from mtprof_nb.views.comparison.comparison_strip import comparison_strip
from mtprof_nb.views.frontend import is_marimo, is_unattended, running_shell
from mtprof_nb.views.panel.show_panel import replace_earlier
from mtprof_nb.views.panel.tabs import COMPARING
from mtprof_nb.views.scene import Scene

if TYPE_CHECKING:
    from mtprof_nb.views.panel.widget import Panel


def show(findings: Findings, limit: int | None = None) -> Panel | None:
    """Display the comparison: a notebook gets the widget, or the page without scripts, a terminal the text.

    marimo displays nothing but the values of cells: there the panel is returned.
    """
    if is_marimo():
        return panel(findings, limit)
    shell, bundle = running_shell(), comparison_bundle(findings, limit)
    if not hasattr(shell, "kernel"):
        sys.stdout.write(f"{bundle['text/plain']}\n")
        return None
    from IPython.display import display

    if is_unattended(shell):
        display(bundle, raw=True)
        return None
    made = panel(findings, limit)
    replace_earlier(shell, made)
    display(made)
    return None


def show_value(findings: Findings) -> None:
    """Display a comparison that is the value of a cell.

    `NotImplementedError`, which IPython expects, where a mime bundle is displayed instead.
    """
    shell = running_shell()
    if not hasattr(shell, "kernel") or is_unattended(shell):
        raise NotImplementedError
    show(findings)


def panel(findings: Findings, limit: int | None = None) -> Panel:
    """The comparison as a widget. It renders also as HTML, Markdown and text."""
    from mtprof_nb.views.panel.widget import ComparingPanel

    return ComparingPanel(
        comparison_scene(findings, limit),
        [kind.name for kind in COMPARING],
        comparison_strip(findings),
        comparison_bundle(findings, limit),
    )


def comparison_scene(findings: Findings, limit: int | None = None) -> Scene:
    """The scene of the tabs that compare."""
    runs = findings.sides.b.runs
    return Scene(runs[0] if runs else empty_trace(), limit=limit, against=findings)
