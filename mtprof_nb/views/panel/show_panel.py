"""Shows the panel under its cell, and closes it when the cell runs again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from mtprof_nb.analysis.sort_keys import sort_column
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.comparison.comparison_html import comparison_bundle
from mtprof_nb.views.comparison.comparison_strip import with_verdict
from mtprof_nb.views.escaped_text import encodable, shown
from mtprof_nb.views.frontend import is_marimo, is_unattended, run_of, running_shell
from mtprof_nb.views.panel.tabs import tabs_of
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.strip import Strip, strip_of

if TYPE_CHECKING:
    from mtprof_nb.comparison.compared import Compared
    from mtprof_nb.views.panel.widget import Panel

#: For each cell its last run, and the panels that the run showed.
_of_cell: dict[str, tuple[str, list[Panel]]] = {}
#: The last run of a cell that showed panels, and their traces.
_last_run: tuple[str, list[ref[Trace]]] = ("", [])


def panel(trace: Trace, *, tabs: tuple[str, ...] | None = None, **options: Any) -> Panel:
    """The panel of `trace` as a widget, with options of `scene_of`. It renders also as HTML and as text."""
    return _panel(scene_of(trace, **options), tabs)


def show(trace: Trace, **options: Any) -> Panel | None:
    """Display the panel once, with options of `scene_of`.

    A notebook gets the widget, which is returned too, a notebook that a program executes the page without scripts, a
    terminal the text. marimo displays nothing but the values of cells: there the panel is returned alone.
    """
    scene = scene_of(trace, **options)
    shell = running_shell()
    if hasattr(shell, "kernel") and not is_marimo():
        _remember(shell, trace)
    return show_once(lambda: bundle_of(scene), lambda: _panel(scene))


def show_once(bundle: Callable[[], dict[str, str]], panel: Callable[[], Panel]) -> Panel | None:
    """Display a panel, or where widgets do not run its bundle; the panel that is returned is not displayed again."""
    if is_marimo():
        return panel()
    shell = running_shell()
    if not hasattr(shell, "kernel"):
        sys.stdout.write(encodable(f"{bundle()['text/plain']}\n", sys.stdout))
        return None
    from IPython.display import display

    if is_unattended(shell):
        display(bundle(), raw=True)
        return None
    made = panel()
    replace_earlier(shell, made)
    display(made)
    made.shown_in = run_of(shell)[1]
    return made


def show_value(trace: Trace) -> None:
    """Display the panel of a recording that is the value of a cell, unless the cell has shown it.

    `NotImplementedError`, which IPython expects, where a mime bundle is displayed instead.
    """
    shell = running_shell()
    if not hasattr(shell, "kernel") or is_unattended(shell) or was_shown(trace):
        raise NotImplementedError
    show(trace)


def was_shown(trace: Trace) -> bool:
    """Whether the running cell has shown the panel of `trace`."""
    _, run = run_of(running_shell())
    shown_run, traces = _last_run
    return run != "" and run == shown_run and any(shown() is trace for shown in traces)


def _remember(shell: Any, trace: Trace) -> None:
    global _last_run
    _, run = run_of(shell)
    shown_run, traces = _last_run
    _last_run = (run, [*traces, ref(trace)] if run == shown_run else [ref(trace)])


def scene_of(
    trace: Trace,
    *,
    name: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    status: str | None = None,
    show_all: bool = False,
    against: Compared | None = None,
) -> Scene:
    """The scene of a panel of `trace`: the trace with the options for showing it.

    `sort` is a column or one of torch's sort keys, else `AttributeError`; `status` is how the program ended;
    `against` is its comparison with another one.
    """
    title = None if name is None else shown(name)
    return Scene(trace, title, status, sort_column(sort), limit, show_all, against)


def bundle_of(scene: Scene, charts: bool = True) -> dict[str, str]:
    """The panel as HTML, Markdown and text, each with the comparison after it, if there is one."""
    texts = static.bundle(scene, charts)
    if scene.against is None:
        return texts
    added = comparison_bundle(scene.against, scene.limit)
    return {mime: f"{text}\n\n{added[mime]}" for mime, text in texts.items()}


def full_strip(scene: Scene) -> Strip:
    """The strip of a panel, with the verdict of its comparison, if there is one."""
    strip = strip_of(scene.trace, scene.name, scene.status)
    return strip if scene.against is None else with_verdict(strip, scene.against)


def _panel(scene: Scene, tabs: tuple[str, ...] | None = None) -> Panel:
    from mtprof_nb.views.panel.widget import ComparingPanel, Panel, RanksPanel

    table_alone = tabs == ("operators",)
    kind = Panel if len(scene.trace.processes) == 1 else RanksPanel
    kind = kind if scene.against is None else ComparingPanel
    return kind(
        scene,
        tabs or [kind.name for kind in tabs_of(scene)],
        None if table_alone else full_strip(scene),
        bundle_of(scene, charts=not table_alone),
    )


def replace_earlier(shell: Any, made: Panel) -> None:
    """Close the panels of an earlier run of the cell: their output was replaced, and their trace can be freed."""
    cell, run = run_of(shell)
    if not cell:
        return
    earlier_run, earlier = _of_cell.get(cell, ("", []))
    if earlier_run == run:
        earlier.append(made)
        return
    _of_cell[cell] = (run, [made])
    for old in earlier:
        old.close()
