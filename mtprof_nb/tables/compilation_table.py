"""`Compilations`: one row a compilation of `torch.compile`, and the graph breaks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from mtprof_nb.analysis import units
from mtprof_nb.analysis.compiled import (
    Compiled,
    compilations,
    compiled_sentence,
    function_of,
    graph_breaks,
)
from mtprof_nb.model.compilations import AGAIN, GraphBreak
from mtprof_nb.model.source_files import line_label
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.row_table import RowTable
from mtprof_nb.tables.table import Table, TableColumn, table_of

NOTHING_COMPILED = "nothing was compiled: no torch.compile, or its code was compiled before"


@dataclass(frozen=True)
class CompilationRow:
    """One compilation. Times are in nanoseconds, `start_ns` since the recording began."""

    #: Torch's number, as "0/1": of the function, and of its version.
    compile_id: str
    function: str
    file: str
    line: int
    #: `first call`, `first backward`, `again` or `CUDA graph`.
    cause: str
    #: Torch's reason to compile again; "" for a first time.
    reason: str
    start_ns: int
    duration_ns: int
    dynamo_ns: int
    aot_ns: int
    inductor_ns: int
    build_ns: int
    #: Graphs that came from a cache, and graphs that did not.
    cache_hits: int
    cache_misses: int
    #: Graph breaks that it met.
    breaks: int
    #: The line of the program that called; "" and 0 where it is not known.
    caller_file: str
    caller_line: int
    #: Why it failed, and why CUDA graphs were not used; "" where neither is so.
    failure: str
    cuda_graph_skipped: str


_COLUMNS = (
    TableColumn("where", "Compiled", "code", "the function, its file or cell, and its line"),
    TableColumn("why", "Why", "words", "a first time, or torch's reason to compile again"),
    TableColumn("duration_ns", "Time", "time", "from its beginning to its end"),
    TableColumn("dynamo_ns", "Dynamo", "time", "reading Python and making a graph"),
    TableColumn("aot_ns", "AOT", "time", "tracing the graph and its backward pass"),
    TableColumn("inductor_ns", "Inductor", "time", "fusing ops and writing kernels"),
    TableColumn("build_ns", "Build", "time", "waiting for compilers of the kernels"),
    TableColumn("cache_hits", "Cached", "count", "graphs that came from a cache"),
    TableColumn("breaks", "Breaks", "count", "graph breaks that it met"),
)


class Compilations(RowTable[CompilationRow]):
    """The compilations of a recording, in the order of time."""

    _nothing = NOTHING_COMPILED
    _facts = tuple(part.name for part in fields(CompilationRow))

    def __init__(self, trace: Trace) -> None:
        super().__init__(_row(trace, one) for one in compilations(trace))
        self._trace = trace

    @property
    def sentence(self) -> str:
        """The time of compiling, how often and why; "" if nothing was compiled."""
        return compiled_sentence(self._trace)

    @property
    def breaks(self) -> list[GraphBreak]:
        """Lines at which a graph broke, with torch's reason and hint, and how often it was met."""
        return list(graph_breaks(self._trace))

    def content(self) -> Table:
        """A row for each compilation; graph breaks are notes."""
        return table_of(_COLUMNS, self._rows, self._made, notes=self._notes, sentence=self.sentence)

    def brief(self, most: int) -> Table | None:
        """The first rows, as a page shows them below the sentence; None without any."""
        table = replace(self.content(), sentence="")
        return table.first(most, "compilation") if self._rows else None

    @property
    def _notes(self) -> tuple[str, ...]:
        return tuple(break_text(self._trace, one) for one in self.breaks)

    def _made(self, row: CompilationRow) -> dict[str, Any]:
        place = f"{line_label(self._trace, row.file, row.line)} " if row.file else ""
        again = f"{AGAIN}: {row.reason}" if row.reason else row.cause
        return {"where": f"{place}{row.function}", "why": again}


def break_text(trace: Trace, one: GraphBreak) -> str:
    """As "2 graph breaks at Cell [4]:10: torch's reason; its hint"."""
    place = f" at {line_label(trace, one.file, one.line)}" if one.file else ""
    words = "; ".join(filter(None, (one.reason, one.first_hint)))
    return f"{units.plural(one.times, 'graph break')}{place}: {words}"


def _row(trace: Trace, one: Compiled) -> CompilationRow:
    facts = one.facts._asdict() | {"function": function_of(one.facts)}
    shared = {part.name: facts[part.name] for part in fields(CompilationRow) if part.name in facts}
    shared["breaks"] = sum(broken.times for broken in one.facts.breaks)
    caller_file, caller_line = one.line or ("", 0)
    return CompilationRow(
        **shared,
        start_ns=trace.start_ns.item(one.event) - trace.began_ns,
        duration_ns=one.duration_ns,
        caller_file=caller_file,
        caller_line=caller_line,
    )
