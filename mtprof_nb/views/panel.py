"""The panel under the cell: made, shown once, and replaced when its cell runs again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mtprof_nb.trace import Trace
from mtprof_nb.views import static
from mtprof_nb.views.rows import sort_column
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.summary import summary
from mtprof_nb.views.tabs import TABS
from mtprof_nb.views.text import shown

if TYPE_CHECKING:
    from mtprof_nb.views.widget import Panel

#: Panels by the cell that shows them: the run of the cell, and what it showed.
_of_cell: dict[str, tuple[str, list[Panel]]] = {}


def panel(
    trace: Trace,
    *,
    name: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    status: str | None = None,
    show_all: bool = False,
    tabs: tuple[str, ...] | None = None,
) -> Panel:
    """The panel of `trace` as a widget, which renders also as HTML without scripts and as text.

    `sort` is a column or one of torch's sort keys, else `AttributeError`; `status` says how the program ended.
    """
    from mtprof_nb.views.widget import Panel

    scene = Scene(trace, sort=sort_column(sort), limit=limit, show_all=show_all)
    title = None if name is None else shown(name)
    table_alone = tabs == ("operators",)
    return Panel(
        scene,
        tabs or tuple(kind.name for kind in TABS),
        None if table_alone else summary(trace, title, status),
        static.html(
            trace, name=title, sort=sort, limit=limit, status=status, show_all=show_all, charts=not table_alone
        ),
        static.text(trace, sort, limit, name=title, status=status, show_all=show_all),
    )


def show(
    trace: Trace,
    *,
    name: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    status: str | None = None,
    show_all: bool = False,
) -> None:
    """Display the panel once: the widget in a notebook, the text table in a terminal or a script."""
    options: dict[str, Any] = {"name": name, "status": status, "show_all": show_all}
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel"):
        sys.stdout.write(static.text(trace, sort, limit, **options) + "\n")
        return
    from IPython.display import display

    made = panel(trace, sort=sort, limit=limit, **options)
    _replace_earlier(shell, made)
    display(made)


def _shell() -> Any:
    """The running IPython shell, None where there is none; IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _replace_earlier(shell: Any, made: Panel) -> None:
    """Close what an earlier run of the same cell showed: its output is gone, and its trace need not stay."""
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
