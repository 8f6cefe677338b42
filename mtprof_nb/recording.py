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
    from mtprof_nb.tables.compilation_table import Compilations
    from mtprof_nb.tables.device_table import Devices
    from mtprof_nb.tables.events import Events
    from mtprof_nb.tables.function_table import Functions
    from mtprof_nb.tables.line_table import Lines
    from mtprof_nb.tables.rank_table import Ranks
    from mtprof_nb.tables.step_table import Steps
    from mtprof_nb.views.panel.widget import Panel

Path = str | PathLike[str]


class Results:
    """Tables, charts and files of `self.trace`.
    In examples, `prof` is a training run of three steps, `job` has four ranks, and `gpu` a device.
    """

    #: Whether the cell that is running shows the panel when it ends, so that its value need not.
    panel_follows = False
    #: Points of the last memory timeline that was exported, None before.
    mem_tl: Any = None

    @property
    def trace(self) -> Trace:
        """The finished recording."""
        raise NotImplementedError

    def events(self, *, rank: int | None = None) -> Events:
        """Events ordered by start, without bookkeeping ops.
        With `rank`, only those of that process.

            >>> sum(event.name == "aten::addmm" for event in prof.events())
            6
        """
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
        Python functions have rows only with `include_python_functions`. With `rank`, of that process.

            >>> rows = prof.key_averages(group_by_input_shape=True)
            >>> [(row.input_shapes[1], row.count) for row in rows if row.key == "aten::addmm"]
            [([4, 8], 3), ([4, 16], 3)]
        """
        from mtprof_nb.tables.averages import key_averages

        trace = self._trace_of(rank)
        return key_averages(
            trace, group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions
        )

    def lines(self, *, rank: int | None = None) -> Lines:
        """Cost of each source line in the forward pass, the backward pass and the optimizer.
        With `rank`, on that process.

            >>> [row.source for row in prof.lines() if row.optimizer_ns]
            ['optimizer.step()']
        """
        from mtprof_nb.tables.line_table import Lines

        return Lines(self._trace_of(rank))

    def steps(self, *, rank: int | None = None) -> Steps:
        """Time of each marked step by phase, and what takes longer in slow steps.
        With `rank`, on that process.

            >>> [row.number for row in prof.steps()]
            [0, 1, 2]
        """
        from mtprof_nb.tables.step_table import Steps

        return Steps(self._trace_of(rank))

    def compilations(self, *, rank: int | None = None) -> Compilations:
        """Each compilation of `torch.compile`: function, cause, time by stage, and `.breaks`.
        With `rank`, of that process.

            >>> len(prof.compilations())
            0
        """
        from mtprof_nb.tables.compilation_table import Compilations

        return Compilations(self._trace_of(rank))

    def ranks(self) -> Ranks:
        """A row for each rank, and the one that the others waited for: `.straggler`, None without one.
        `.collectives()` are matched over ranks, `.steps()` has the time of each step on each rank.

            >>> job.ranks().straggler.rank
            2
        """
        from mtprof_nb.tables.rank_table import Ranks

        return Ranks(self.trace)

    def of_rank(self, rank: int) -> Recording:
        """One rank as a recording of its own.
        `ValueError` lists the ranks if there is no such one.

            >>> job, job.of_rank(2)
            (<Recording 'job': 90 events, 4 processes>, <Recording 'job': 30 events>)
        """
        return Recording(self._trace_of(rank))

    def _trace_of(self, rank: int | None) -> Trace:
        """The recording of one rank, all of it for None."""
        if rank is None:
            return self.trace
        from mtprof_nb.analysis.ranks.ranked_processes import trace_of_rank

        return trace_of_rank(self.trace, rank)

    def functions(self, *, rank: int | None = None) -> Functions:
        """Time of each Python function, its own and in total: in ops, in Python code and in waiting.
        Needs samples: `profile(with_python=True)`, in a cell `--python`. `rank` is a process.

            >>> prof.functions().to_dataframe().columns[:4].tolist()
            ['file', 'line', 'function', 'own_ns']
        """
        from mtprof_nb.tables.function_table import Functions

        return Functions(self._trace_of(rank))

    def save(self, path: Path) -> None:
        """Write the whole recording to a file.
        `mtprof_nb.load` reads it.

            >>> prof.save("run.mtp")
        """
        from mtprof_nb.export import recording_file

        recording_file.write(self.trace, path)

    def devices(self, *, rank: int | None = None) -> Devices:
        """When each device was busy and why it was idle, its launches, kernels, copies and collectives.
        With `rank`, the devices of that process.

            >>> [(row.computing_ns, row.idle_ns) for row in gpu.devices()]
            [(3000, 1000)]
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
        The file has what `torch.profiler` writes; `save` keeps everything. Of stacks of more than
        100 frames, the middle is left out. The options are torch's, for kernels of CUDA graphs,
        whose nodes are not recorded: `cuda_graph_annotations` with kernels to annotate, and
        `graph_lanes="all"` without annotations, raise `ValueError`; a `default_stream` other than
        7 without `graph_lanes="all"` gives a warning. `use_python_export` has no effect.

            >>> prof.export_chrome_trace("trace.json.gz")
        """
        from mtprof_nb.export import chrome_trace

        chrome_trace.check_graph_lanes(self.trace, cuda_graph_annotations, graph_lanes, default_stream)
        chrome_trace.write(self.trace, path)

    def wait_for_exports(self) -> None:
        """Return at once: each export is complete when its method returns."""

    def take_pending_cuspy_export(self) -> None:
        """Return None, as torch does without the backend `cuspy`: no export is pending."""

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Write collapsed stacks for flamegraph.pl or speedscope.
        A stack of more than 100 frames lacks its middle. Metrics are those of torch, and
        `self_python_time_total`, which needs samples: time in ops, in Python code and in waiting.

            >>> prof.export_stacks("stacks.txt", "self_cpu_time_total")
        """
        from mtprof_nb.export import collapsed_stacks

        collapsed_stacks.write(self.trace, path, metric)

    def export_memory_timeline(self, path: Path, device: str | None = None) -> None:
        """Write memory over time by category.
        The suffix is `.json`, `.json.gz`, `.raw.json.gz`, or `.html`: `export_html`, at `device`.

            >>> prof.export_memory_timeline("memory.html")
        """
        from mtprof_nb.export import memory_timeline

        if not fsdecode(path).endswith(".html"):
            self.mem_tl = memory_timeline.write(self.trace, path, device)
            return
        from mtprof_nb.views.page import html_page
        from mtprof_nb.views.scene import Scene

        self.mem_tl = memory_timeline.timeline_for(self.trace, path, device)
        html_page.write(html_page.page(Scene(self.trace, memory_of=str(self.mem_tl.device))), path)

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
        """Write the panel with all its tabs as one HTML file, which needs no kernel and no network.
        The options are those of `show`.

            >>> prof.export_html("report.html", name="before the change")
        """
        from mtprof_nb.views.page import html_page
        from mtprof_nb.views.panel.show_panel import scene_of

        scene = scene_of(self.trace, name=name, sort=sort, limit=limit, status=status, show_all=show_all)
        html_page.write(html_page.page(scene), path)

    def summary(self, *, rank: int | None = None) -> Summary:
        """The key figures: wall time, time in ops and outside, phases, steps, peak memory.
        With `rank`, those of that process.

            >>> prof.summary().steps, list(prof.summary().phases_ns)
            (3, ['forward', 'backward', 'optimizer', 'other', 'compiling'])
        """
        from mtprof_nb.analysis.summary import summary

        return summary(self._trace_of(rank))

    def advice(self, *, rank: int | None = None) -> Advice:
        """At most five findings, the best first: line, evidence, fix and upper bound of the gain.
        There are none for several ranks together: name one with `rank`.

            >>> prof.advice().to_dataframe().columns[:4].tolist()
            ['title', 'evidence', 'fix', 'line']
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
        `name` is its title, `sort` a column of the operators or one of torch's sort keys, `limit` the
        most rows, `status` a line about how the program ended. `show_all` adds Python frames and
        runtime calls. Returns the panel, which is not displayed twice as the value of the same cell;
        marimo displays only values. Returns None for text, and if a program executes the notebook.

            >>> prof.show(limit=3)  # doctest: +ELLIPSIS
            train...
        """
        from mtprof_nb.views.panel import show_panel

        return show_panel.show(self.trace, name=name, sort=sort, limit=limit, status=status, show_all=show_all)

    def to_markdown(self, *, name: str | None = None, sort: str | None = None, limit: int | None = None) -> str:
        """The overview, findings, longest lines and top operators as Markdown, for an issue or a chat.
        The options are those of `show`.

            >>> prof.to_markdown(name="run 7").partition(":")[0]
            '**run 7**'
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
        """The timeline as a plotly figure.
        `python` adds Python frames, `rank` chooses a process.

            >>> prof.timeline().write_html("timeline.html")
        """
        from mtprof_nb.views.tabs.timeline import timeline_figure

        return timeline_figure.timeline(self._trace_of(rank), python)

    def sunburst(self, metric: str = "self", *, fold_libraries: bool = True, rank: int | None = None) -> Figure:
        """The stacks as a plotly sunburst, sized by `metric`: self, count, python, memory or device.
        The frames of a library that call each other are one slice, unless `fold_libraries` is False.

            >>> prof.sunburst("memory").data[0].type
            'sunburst'
        """
        from mtprof_nb.views.tabs.stacks import stack_figures

        return stack_figures.sunburst(self._trace_of(rank), metric, fold_libraries)

    def icicle(self, metric: str = "self", *, fold_libraries: bool = True, rank: int | None = None) -> Figure:
        """The stacks as a plotly icicle.
        The options are those of `sunburst`.

            >>> prof.icicle("count").data[0].type
            'icicle'
        """
        from mtprof_nb.views.tabs.stacks import stack_figures

        return stack_figures.icicle(self._trace_of(rank), metric, fold_libraries)

    def memory(self, *, rank: int | None = None) -> Figure:
        """Allocated bytes over time as a plotly figure.
        `ValueError` where none were recorded.

            >>> [curve.name for curve in prof.memory().data]
            ['cpu', 'peak of cpu']
        """
        from mtprof_nb.views.tabs.memory import memory_figure

        return memory_figure.memory(self._trace_of(rank))

    def operators(self, *, rank: int | None = None) -> Panel:
        """The interactive table of operators alone, as a widget.
        With `rank`, of that process.

            >>> table = prof.operators()
        """
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
        processes = f", {count} processes" if (count := len(self._trace.processes)) > 1 else ""
        return f"<Recording {shortened(self.name)!r}: {len(self._trace):,} events{processes}>"
