"""Shows the panel under its cell, and closes it when the cell runs again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mtprof_nb.analysis.sort_keys import sort_column
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.frontend import is_unattended, running_shell
from mtprof_nb.views.panel.tabs import tabs_of
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.strip import strip_of

if TYPE_CHECKING:
    from mtprof_nb.views.panel.widget import Panel

#: For each cell its last run, and the panels that the run showed.
_of_cell: dict[str, tuple[str, list[Panel]]] = {}


def panel(trace: Trace, *, tabs: tuple[str, ...] | None = None, **options: Any) -> Panel:
    """The panel of `trace` as a widget, with options of `scene_of`. It renders also as HTML and as text."""
    return _panel(scene_of(trace, **options), tabs)


def show(trace: Trace, **options: Any) -> None:
    """Display the panel once, with options of `scene_of`.

    A notebook gets the widget, a notebook that a program executes the page without scripts, a terminal the text.
    """
    scene = scene_of(trace, **options)
    shell = running_shell()
    if shell is None or not hasattr(shell, "kernel"):
        sys.stdout.write(static.text(scene) + "\n")
        return
    from IPython.display import display

    if is_unattended(shell):
        display({"text/html": static.html(scene), "text/plain": static.text(scene)}, raw=True)
        return
    made = _panel(scene)
    _replace_earlier(shell, made)
    display(made)


def scene_of(
    trace: Trace,
    *,
    name: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    status: str | None = None,
    show_all: bool = False,
) -> Scene:
    """The scene of a panel of `trace`: the trace with the options for showing it.

    `sort` is a column or one of torch's sort keys, else `AttributeError`; `status` says how the program ended.
    """
    title = None if name is None else shown(name)
    return Scene(trace, name=title, status=status, sort=sort_column(sort), limit=limit, show_all=show_all)


def _panel(scene: Scene, tabs: tuple[str, ...] | None = None) -> Panel:
    from mtprof_nb.views.panel.widget import Panel

    table_alone = tabs == ("operators",)
    return Panel(
        scene,
        tabs or [kind.name for kind in tabs_of(scene)],
        None if table_alone else strip_of(scene.trace, scene.name, scene.status),
        static.html(scene, charts=not table_alone),
        static.text(scene),
    )


def _replace_earlier(shell: Any, made: Panel) -> None:
    """Close the panels of an earlier run of the cell: their output was replaced, and their trace can be freed."""
    parent = shell.kernel.get_parent() if hasattr(shell.kernel, "get_parent") else {}
    cell = parent.get("metadata", {}).get("cellId")
    if not cell:
        return
    run = parent.get("header", {}).get("msg_id", "")
    earlier_run, earlier = _of_cell.get(cell, ("", []))
    if earlier_run == run:
        earlier.append(made)
        return
    _of_cell[cell] = (run, [made])
    for old in earlier:
        old.close()
