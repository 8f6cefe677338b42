"""Explains regions of `torch.compile`: the user's lines that each of their calls stands for."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mtprof_nb.building.compiled_lines import BrokenFunctions, Share, with_user_frames
from mtprof_nb.capture.compiled.graph_text import GraphNodes, Node, read_graph
from mtprof_nb.capture.compiled.kernel_slices import slice_kernels, weights
from mtprof_nb.capture.compiled.present_lines import (
    PresentLines,
    first_line_of_function,
    text_of,
    whole_function,
)
from mtprof_nb.capture.compiled.wrapper_text import CPP, read_wrapper, short_name
from mtprof_nb.capture.living_objects import living
from mtprof_nb.capture.torch_private.inductor_code import (
    SourceFrame,
    graphs,
    lines_of_wrapper,
    wrapper_files,
)
from mtprof_nb.model.trace import Frame, Trace

_BROKEN = BrokenFunctions(whole_function, first_line_of_function)
_NAMED = 3


def open_regions(trace: Trace) -> Trace:
    """`trace` with the user's frames in the stacks of what compiled code called."""
    if trace.stacks is None:
        return trace
    files = {frame.file for frame in trace.stacks.frames} & set(wrapper_files())
    try:
        opened = OpenedRegions(files)
        explained = with_user_frames(trace, opened.explained, _BROKEN)
    except Exception as error:  # names and texts of torch's that another version has otherwise
        note = f"regions of torch.compile were not opened: {type(error).__name__}: {error}"
        return replace(trace, notes=(*trace.notes, note))
    return replace(explained, notes=(*trace.notes, *opened.notes()))


#: For the first lines of parts of a wrapper, in order, the user's frames.
LineTable = list[tuple[int, tuple[SourceFrame, ...]]]


class OpenedRegions:
    """The calls of the wrappers in some files, with the user's lines that they stand for."""

    def __init__(self, files: set[str]) -> None:
        self.explained: dict[tuple[str, int], list[Share]] = {}
        self._closed = self._unknown = 0
        tables = {file: lines_of_wrapper(file) for file in sorted(files)}
        known = graphs(living) if files else {}
        stems = {file: Path(file).stem for file in files}
        read = {file: read_graph(known[stem]) for file, stem in stems.items() if stem in known}
        self._present = PresentLines([*_of_tables(tables), *_of_graphs(read)])
        for file, table in tables.items():
            self._open(file, table, read.get(file))

    def _open(self, file: str, table: LineTable, graph: GraphNodes | None) -> None:
        wrapper = read_wrapper(text_of(file))
        if wrapper is None or not table:
            self._closed += 1
            return
        for call in wrapper.calls:
            if call.kind != CPP and (frames := self._found(_at(table, call.line))):
                self.explained[file, call.line] = [Share(frames, 1, short_name(call.name))]
        slices = slice_kernels(wrapper, graph or GraphNodes({}, ()))
        self._unknown += slices.unknown
        stacks = {frames[-1][:2]: frames for _, frames in table if frames}
        for line, nodes in slices.nodes.items():
            if shares := self._shares(nodes, graph or GraphNodes({}, ()), stacks):
                self.explained[file, line] = shares

    def _shares(
        self,
        nodes: list[Node],
        graph: GraphNodes,
        stacks: dict[tuple[str, int], tuple[SourceFrame, ...]],
    ) -> list[Share]:
        """The lines of a fused kernel, the largest first; [] where one of them is not known."""
        shares = []
        for frame, (weight, ops) in weights(nodes, graph).items():
            frames = self._found(stacks.get(frame[:2], (frame,)))
            if not frames:
                return []
            shares.append(Share(frames, weight, _in_words(ops)))
        return sorted(shares, key=lambda share: -share.weight)

    def _found(self, frames: tuple[SourceFrame, ...]) -> tuple[Frame, ...]:
        """The frames as they are now, () where one of them is not known."""
        found = [self._present.find(frame) for frame in frames]
        return tuple(frame for frame in found if frame is not None) if None not in found else ()

    def notes(self) -> tuple[str, ...]:
        """Sentences about calls without lines."""
        notes = []
        if self._closed:
            notes.append(f"{self._closed} compiled graphs stay closed: their code is unknown")
        if self._unknown:
            notes.append(f"the lines of {self._unknown} fused kernels are not known")
        if lost := sorted(self._present.lost):
            named = ", ".join(f"{file}:{line}" for file, line in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            notes.append(f"compiled code has lines of an older version, not shown: {named}{more}")
        return tuple(notes)


def _of_tables(tables: dict[str, LineTable]) -> Iterator[SourceFrame]:
    for _, frames in itertools.chain(*tables.values()):
        yield from frames


def _of_graphs(read: dict[str, GraphNodes]) -> Iterator[SourceFrame]:
    for node in itertools.chain(*(graph.nodes.values() for graph in read.values())):
        if node.frame is not None:
            yield node.frame


def _at(table: LineTable, line: int) -> tuple[SourceFrame, ...]:
    part = bisect_right(table, line, key=lambda entry: entry[0]) - 1
    return table[part][1] if part >= 0 else ()


def _in_words(ops: Counter[str]) -> str:
    """`mul 3 times, erf`."""
    return ", ".join(f"{op} {count} times" if count > 1 else op for op, count in ops.items())
