"""The panel as a widget: it sends the initial content of each tab, and answers questions of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from secrets import token_hex
from threading import Lock
from typing import Any

import anywidget
import traitlets

from mtprof_nb.analysis.ranks.ranked_processes import titles, trace_of_process
from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.frontend import is_unattended, run_of, running_shell
from mtprof_nb.views.panel import bundle as modules
from mtprof_nb.views.panel import wire
from mtprof_nb.views.panel.saved_panel import panel_page, saved_panel
from mtprof_nb.views.panel.tabs import ALL_TABS, TABS, WITH_RANKS, TabKind
from mtprof_nb.views.scene import Scene, Tab
from mtprof_nb.views.strip import Strip

VIEW, SCRIPT = "application/vnd.jupyter.widget-view+json", "application/javascript"


def _names(kinds: Iterable[TabKind]) -> tuple[str, ...]:
    return tuple(kind.name for kind in kinds)


class Panel(anywidget.AnyWidget):
    """One profile under its cell. It can also be rendered as HTML without scripts, and as text."""

    _esm = modules.script(_names(TABS))
    _css = modules.style(_names(TABS))
    #: Name and title of each tab.
    tabs: traitlets.List[Any] = traitlets.List().tag(sync=True)
    #: The strip above the tabs; empty if only a table is shown.
    strip = traitlets.Dict().tag(sync=True)
    #: The initial content of each tab, packed and saved with the notebook; a missing tab was never opened.
    first = traitlets.Dict().tag(sync=True)
    #: Number and title of each process that can be shown alone; empty for one process.
    ranks: traitlets.List[Any] = traitlets.List().tag(sync=True)
    #: The id of the page without scripts that is displayed with this panel, which hides it.
    page = traitlets.Unicode().tag(sync=True)

    #: The run of a cell in which `show` displayed the panel: as the value of that cell, it is not displayed again.
    shown_in = ""

    def __init__(self, scene: Scene, tabs: Iterable[str], strip: Strip | None, static: Mapping[str, str]) -> None:
        kinds = [kind for kind in ALL_TABS if kind.name in set(tabs)]
        self._scene, self._kinds = scene, {kind.name: kind for kind in kinds}
        self._tabs: dict[str, Tab] = {kind.name: kind.make(scene) for kind in kinds}
        #: The process that was asked for alone last, and its tabs.
        self._process, self._tabs_of_process = -1, dict[str, Tab]()
        # A frontend may deliver messages on another thread while a cell runs.
        self._lock = Lock()
        #: The panel as HTML, Markdown and text, by mime type.
        self._static = dict(static)
        eager = [kind for kind in kinds if len(scene.trace) <= kind.eager_events]
        super().__init__(
            tabs=[{"name": kind.name, "title": kind.title} for kind in kinds],
            strip=strip.written() if strip else {},
            first={kind.name: first_of(self._tabs[kind.name]) for kind in eager},
            ranks=ranks_of(scene.trace),
            page=token_hex(8),
        )
        self.on_msg(self._on_message)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        made = super()._repr_mimebundle_(**options)
        if made is None:
            return None
        bundle, metadata = made if isinstance(made, tuple) else (made, {})
        shown = {} if is_unattended(running_shell()) else bundle
        return {**shown, **self._static}, metadata

    def _ipython_display_(self) -> None:
        """Display the page without scripts and, as outputs of their own, the widget and the script of a saved panel.

        A notebook that is opened again without the state of its widgets then shows the page, or the saved panel.
        """
        shell = running_shell()
        if self.shown_in and self.shown_in == run_of(shell)[1]:
            self.shown_in = ""
            return
        if not hasattr(shell, "kernel") or is_unattended(shell):
            raise NotImplementedError  # IPython then takes the mime bundle
        from IPython.display import display

        page = panel_page(self.page, self._static["text/html"])
        display({**self._static, "text/html": page}, raw=True)
        made = super()._repr_mimebundle_()
        bundle = made[0] if isinstance(made, tuple) else made
        display({VIEW: (bundle or {})[VIEW], "text/plain": ""}, raw=True)
        script = saved_panel(self.page, self.tabs, self.strip, self.first)
        display({SCRIPT: script, "text/plain": ""}, raw=True)

    def close(self) -> None:
        """Close the panel and the layout that every widget has, and free its trace at once.

        IPython keeps values of cells, and this one may be among them.
        """
        layout = self.layout
        super().close()
        layout.close()
        self.on_msg(self._on_message, remove=True)
        self._scene, self._tabs, self._tabs_of_process = Scene(empty_trace()), {}, {}

    def __repr__(self) -> str:
        return self._static["text/plain"]

    def _on_message(self, _: Any, question: dict[str, Any], __: list[Any]) -> None:
        number = question.get("number")
        try:
            answer, buffers = self._answer(question)
        except Exception as error:
            answer, buffers = {"error": f"{type(error).__name__}: {error}"}, []
        self.send({"number": number, **answer}, buffers)

    def _answer(self, question: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        ask = question.get("ask")
        if ask == "hello":
            return {}, []
        with self._lock:
            process = question.get("process", -1)
            tab = self._tabs[question["tab"]] if process < 0 else self._tab_of(question["tab"], process)
            if ask == "first" and process >= 0:
                return {}, [first_of(tab)]
            if ask == "first":
                self.first = {**self.first, question["tab"]: first_of(tab)}
                return {}, []
            return {}, [wire.packed(wire.with_deltas(tab.answer(question)))]

    def _tab_of(self, name: str, process: int) -> Tab:
        """A tab for one process. The tabs of the process before it are dropped."""
        if process != self._process:
            self._process, self._tabs_of_process = process, {}
        if name not in self._tabs_of_process:
            alone = replace(self._scene, trace=trace_of_process(self._scene.trace, process))
            self._tabs_of_process[name] = self._kinds[name].make(alone)
        return self._tabs_of_process[name]


class RanksPanel(Panel):
    """A panel that can have the tab of ranks as well: other panels do without its script."""

    _esm = modules.script(_names(WITH_RANKS))
    _css = modules.style(_names(WITH_RANKS))


class ComparingPanel(Panel):
    """A panel that can have the tabs of a comparison as well: other panels do without their script."""

    _esm = modules.script(_names(ALL_TABS))
    _css = modules.style(_names(ALL_TABS))


def ranks_of(trace: Trace) -> list[dict[str, Any]]:
    """The position of each process and its title, in the order of ranks; empty for one process."""
    if len(trace.processes) < 2:
        return []
    ranks = [process.rank if process.rank >= 0 else 1 << 31 for process in trace.processes]
    order, names = sorted(range(len(ranks)), key=lambda number: ranks[number]), titles(trace)
    return [{"process": number, "title": shown(names[number])} for number in order]


def first_of(tab: Tab) -> bytes:
    """The first content of a tab, packed. A tab that fails shows its error, and the other tabs are not affected."""
    try:
        return wire.packed(tab.first())
    except Exception as error:
        return wire.packed({"empty": f"This could not be computed ({type(error).__name__}: {error})."})
