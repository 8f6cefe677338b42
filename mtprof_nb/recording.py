"""Answers of a recording: `Results` for a profile, `Recording` for a trace that was loaded."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fsdecode
from typing import TYPE_CHECKING, Any

from mtprof_nb.errors import shortened
from mtprof_nb.model.trace import Trace

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from mtprof_nb.analysis.summary import Summary
    from mtprof_nb.tables.advice_list import Advice
    from mtprof_nb.tables.averages import EventList
    from mtprof_nb.tables.device_table import Devices
    from mtprof_nb.tables.events import Events
    from mtprof_nb.tables.function_table import Functions
    from mtprof_nb.tables.line_table import Lines
    from mtprof_nb.tables.rank_table import Ranks
    from mtprof_nb.tables.step_table import Steps
    from mtprof_nb.views.panel.widget import Panel

Path = str | PathLike[str]


class Results:
    """Tables, charts and files of `self.trace`."""

    #: Whether the cell that is running shows the panel when it ends, so that its value need not.
    panel_follows = False
    #: Points of the last memory timeline that was exported, None before.
    mem_tl: Any = None

    @property
    def trace(self) -> Trace:
        """The finished recording."""
        raise NotImplementedError

    def events(self, *, rank: int | None = None) -> Events:
        """Events ordered by start, without bookkeeping ops; with `rank`, those of that process alone."""
        from mtprof_nb.tables.events import Events

        return Events(self._trace_of(rank))

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
        *,
        rank: int | None = None,
    ) -> EventList:
        """Events grouped by name and device and, if requested, by shapes, the `n` innermost frames or overload.

        Python functions, which `with_stack` records, have rows only with `include_python_functions`. With `rank`, only
        the events of that process count.
        """
        from mtprof_nb.tables.averages import key_averages

        trace = self._trace_of(rank)
        return key_averages(
            trace, group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions
        )

    def lines(self, *, rank: int | None = None) -> Lines:
        """Cost of each source line in the forward pass, the backward pass and the optimizer; with `rank`, there."""
        from mtprof_nb.tables.line_table import Lines

        return Lines(self._trace_of(rank))

    def steps(self, *, rank: int | None = None) -> Steps:
        """The time of each marked step by phase, and in what slow steps differ from the others; with `rank`, there."""
        from mtprof_nb.tables.step_table import Steps

        return Steps(self._trace_of(rank))

    def ranks(self) -> Ranks:
        """A row for each rank, and the one that the others waited for: `.straggler`, None without one.

        Also the collectives matched over ranks, `.collectives()`, and the time of each step on each rank, `.steps()`.
        """
        from mtprof_nb.tables.rank_table import Ranks

        return Ranks(self.trace)

    def of_rank(self, rank: int) -> Recording:
        """One rank as a recording of its own. `ValueError` lists the ranks if there is no such one."""
        return Recording(self._trace_of(rank))

    def _trace_of(self, rank: int | None) -> Trace:
        """The recording of one rank, all of it for None."""
        if rank is None:
            return self.trace
        from mtprof_nb.analysis.ranks.ranked_processes import trace_of_rank

        return trace_of_rank(self.trace, rank)

    def functions(self, *, rank: int | None = None) -> Functions:
        """Time of each Python function, its own and in total: in ops, in Python code and in waiting.

        Needs samples of Python stacks: `profile(with_python=True)`. A cell takes them with `--python`, which is its
        default if the native recorder is built. With `rank`, only those
        of that process count.
        """
        from mtprof_nb.tables.function_table import Functions

        return Functions(self._trace_of(rank))

    def save(self, path: Path) -> None:
        """Write the whole recording as `run.mtp`, which `mtprof_nb.load` reads."""
        from mtprof_nb.export import recording_file

        recording_file.write(self.trace, path)

    def devices(self, *, rank: int | None = None) -> Devices:
        """When each device was busy and why it was idle, its launches, kernels, copies and collectives.

        With `rank`, the devices of that process.
        """
        from mtprof_nb.tables.device_table import Devices

        return Devices(self._trace_of(rank))

    def export_chrome_trace(
        self,
        path: Path,
        use_python_export: bool = False,  # noqa: ARG002 - torch's
        cuda_graph_annotations: Mapping[int, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Write the trace for Perfetto, chrome://tracing or HolisticTraceAnalysis: `.json` or `.json.gz`.

        The file has what `torch.profiler` writes, and loads as such a file does; `save` keeps everything. Of stacks of
        more than 100 frames, the middle is left out.
        `use_python_export` has no effect: torch uses it to choose between two writers, and this package has one. The
        last three options are torch's, for kernels of CUDA graphs, whose nodes are not recorded here. It is a
        `ValueError` to give `cuda_graph_annotations` if there are kernels to annotate, or `graph_lanes="all"` without
        annotations. A `default_stream` other than 7 without `graph_lanes="all"` gives a warning.
        """
        from mtprof_nb.export import chrome_trace

        chrome_trace.check_graph_lanes(self.trace, cuda_graph_annotations, graph_lanes, default_stream)
        chrome_trace.write(self.trace, path)

    def wait_for_exports(self) -> None:
        """Return at once: each export is complete when its method returns."""

    def take_pending_cuspy_export(self) -> None:
        """Return None, as torch does without the backend `cuspy`: no export is pending."""

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Write collapsed stacks for flamegraph.pl or speedscope. A stack of more than 100 frames lacks its middle.

        Metrics are those of torch, and `self_python_time_total`: time in ops, in Python code and in waiting, which
        needs samples of Python stacks.
        """
        from mtprof_nb.export import collapsed_stacks

        collapsed_stacks.write(self.trace, path, metric)

    def export_memory_timeline(self, path: Path, device: str | None = None) -> None:
        """Write memory over time by category: `.json`, `.json.gz`, `.raw.json.gz` or `.html`."""
        if fsdecode(path).endswith(".html"):
            from mtprof_nb.views.page import memory_page

            self.mem_tl = memory_page.write(self.trace, path, device)
            return
        from mtprof_nb.export import memory_timeline

        self.mem_tl = memory_timeline.write(self.trace, path, device)

    def export_html(
        self,
        path: Path,
        *,
        name: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        status: str | None = None,
        show_all: bool = False,
    ) -> None:
        """Write the panel with all its tabs as one HTML file, which opens without a kernel and without a network.

        The options are those of `show`.
        """
        from mtprof_nb.views.page import html_page
        from mtprof_nb.views.panel.show_panel import scene_of

        scene = scene_of(self.trace, name=name, sort=sort, limit=limit, status=status, show_all=show_all)
        html_page.write(html_page.page(scene), path)

    def summary(self, *, rank: int | None = None) -> Summary:
        """The key figures: wall time, time in ops and outside, phases, steps, peak memory; with `rank`, there."""
        from mtprof_nb.analysis.summary import summary

        return summary(self._trace_of(rank))

    def advice(self, *, rank: int | None = None) -> Advice:
        """At most five findings about what to change, the best first: each with line, evidence, fix and upper bound.

        There are none for several ranks together: name one with `rank`.
        """
        from mtprof_nb.tables.advice_list import Advice

        return Advice(self._trace_of(rank))

    def show(
        self,
        *,
        name: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        status: str | None = None,
        show_all: bool = False,
    ) -> Panel | None:
        """Show the panel under the cell: in a notebook the widget, in a terminal the text.

        `name` is its title, `sort` a column of the operators or one of torch's sort keys, `limit` the most rows of the
        table, `status` a line that says how the program ended. `show_all` adds Python frames and runtime calls.
        Returns the panel, a value that any front end displays; as the value of the same cell it is not displayed twice.
        In marimo, which displays only the values of cells, it is returned and not displayed. Returns None for text, and
        if a program executes the notebook.
        """
        from mtprof_nb.views.panel import show_panel

        return show_panel.show(self.trace, name=name, sort=sort, limit=limit, status=status, show_all=show_all)

    def to_markdown(self, *, name: str | None = None, sort: str | None = None, limit: int | None = None) -> str:
        """Key figures, longest lines and top operators as Markdown, to paste into an issue or a chat.

        The options are those of `show`.
        """
        from mtprof_nb.views.panel.show_panel import scene_of
        from mtprof_nb.views.static.markdown_page import markdown

        return markdown(scene_of(self.trace, name=name, sort=sort, limit=limit))

    def _ipython_display_(self) -> None:
        """Show the panel of a recording that is the value of a cell."""
        from mtprof_nb.views.panel.show_panel import show_value

        if self.panel_follows:
            raise NotImplementedError
        show_value(self.trace)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The panel as HTML, Markdown and text; the short text if the cell shows the panel itself."""
        from mtprof_nb.views.panel.show_panel import scene_of, was_shown
        from mtprof_nb.views.static.static_page import bundle

        if self.panel_follows or was_shown(self.trace):
            return {"text/plain": repr(self)}
        return bundle(scene_of(self.trace))

    def _display_(self) -> Panel:
        """The panel as marimo displays it."""
        from mtprof_nb.views.panel.show_panel import panel

        return panel(self.trace)

    def timeline(self, *, python: bool = False, rank: int | None = None) -> Figure:
        """The timeline as a plotly figure; `python` adds Python frames, `rank` chooses a process."""
        from mtprof_nb.views.tabs.timeline import timeline_figure

        return timeline_figure.timeline(self._trace_of(rank), python)

    def sunburst(self, metric: str = "self", *, fold_libraries: bool = True, rank: int | None = None) -> Figure:
        """The stacks as a plotly sunburst, sized by `metric`: self, count, python, memory or device.

        The frames of a library that call each other are one slice, unless `fold_libraries` is False.
        """
        from mtprof_nb.views.tabs.stacks import stack_figures

        return stack_figures.sunburst(self._trace_of(rank), metric, fold_libraries)

    def icicle(self, metric: str = "self", *, fold_libraries: bool = True, rank: int | None = None) -> Figure:
        """The stacks as a plotly icicle, sized by `metric`: self, count, python, memory or device.

        The frames of a library that call each other are one slice, unless `fold_libraries` is False.
        """
        from mtprof_nb.views.tabs.stacks import stack_figures

        return stack_figures.icicle(self._trace_of(rank), metric, fold_libraries)

    def memory(self, *, rank: int | None = None) -> Figure:
        """Allocated bytes over time as a plotly figure; `ValueError` where none were recorded."""
        from mtprof_nb.views.tabs.memory import memory_figure

        return memory_figure.memory(self._trace_of(rank))

    def operators(self, *, rank: int | None = None) -> Panel:
        """The interactive table of operators alone, as a widget; with `rank`, of that process."""
        from mtprof_nb.views.panel.show_panel import panel

        return panel(self._trace_of(rank), tabs=("operators",))


class Recording(Results):
    """Tables, charts and files of a trace, as a finished `profile` has them. `load` returns one."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """The whole recording."""
        return self._trace

    @property
    def name(self) -> str:
        """The `name` of the profile that recorded it, or the name of its file."""
        return self._trace.label

    def __repr__(self) -> str:
        count = len(self._trace.processes)
        processes = f", {count} processes" if count > 1 else ""
        return f"<Recording {shortened(self.name)!r}: {len(self._trace):,} events{processes}>"
