"""Recordings of engines as one recording of all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mtprof_nb import reading
from mtprof_nb.cluster.clock_ping import ClockOffset, note_of
from mtprof_nb.cluster.engines import Answers
from mtprof_nb.loading.processes_of_files import joined_files
from mtprof_nb.model.common_terms import moved_clock
from mtprof_nb.model.file import recording_reader
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording


def gathered(
    answers: Answers[bytes], offsets: Mapping[int, ClockOffset], label: str, cell: str = "", notes: Sequence[str] = ()
) -> Recording | None:
    """One recording of what the engines sent; None if none sent anything.

    Engines outside a process group have the ranks of their order. `cell` is the text that ran: it is shown as `label`.
    `notes` are about how the engines ended; for an engine without an answer, that is added.
    """
    traces = {engine: _read(engine, content) for engine, content in answers.given.items()}
    if not traces:
        return None
    on_one_clock = len({offset.host for offset in offsets.values()}) < 2 or set(offsets) < set(traces)
    align = reading.align
    if not on_one_clock:
        traces = {engine: moved_clock(trace, -offsets[engine].offset_ns) for engine, trace in traces.items()}
        align = partial(reading.align, otherwise=note_of(dict(offsets)))
    files = [Path(f"engine {engine}") for engine in traces]
    trace = joined_files(files, [_with_label(trace, label, cell) for trace in traces.values()], align, by_order=True)
    missing = [f"Engine {engine} is missing: {why}." for engine, why in answers.missing.items()]
    return Recording(replace(trace, label=label, notes=(*notes, *missing, *trace.notes)))


def _read(engine: int, content: bytes) -> Trace:
    return recording_reader.read_packed(content, f"the recording of engine {engine}")


def _with_label(trace: Trace, label: str, cell: str) -> Trace:
    """The trace with the notebook's label for the cell that ran. Other cells have the numbers of the engine."""
    own = {file for file, text in trace.sources.items() if is_cell(file) and cell and text.strip() == cell.strip()}
    cells = {file: label if file in own else f"Engine {text}" for file, text in trace.cells.items()}
    return replace(trace, label=label, cells=cells)
