"""Explains regions of `torch.compile`: the user's lines that each of their calls stands for."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import replace

from mtprof_nb.building.compiled_lines import BrokenFunctions, Share, with_user_frames
from mtprof_nb.capture.compiled.present_lines import (
    PresentLines,
    first_line_of_function,
    text_of,
    whole_function,
)
from mtprof_nb.capture.compiled.wrapper_text import CPP, KernelCall, read_wrapper, short_name
from mtprof_nb.capture.torch_private.inductor_code import (
    SourceFrame,
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
        self._closed: list[str] = []
        tables = {file: lines_of_wrapper(file) for file in sorted(files)}
        parts = itertools.chain(*tables.values())
        self._present = PresentLines(frame for _, frames in parts for frame in frames)
        for file, table in tables.items():
            self._open(file, table)

    def _open(self, file: str, table: LineTable) -> None:
        wrapper = read_wrapper(text_of(file))
        if wrapper is None or not table:
            self._closed.append(file)
            return
        for call in wrapper.calls:
            if call.kind != CPP and (frames := self._frames(call, table)):
                self.explained[file, call.line] = [Share(frames, 1, short_name(call.name))]

    def _frames(self, call: KernelCall, table: LineTable) -> tuple[Frame, ...]:
        """The frames of a call as they are now, () where one of them is not known."""
        part = bisect_right(table, call.line, key=lambda entry: entry[0]) - 1
        frames = [self._present.find(frame) for frame in (table[part][1] if part >= 0 else ())]
        return tuple(frame for frame in frames if frame is not None) if None not in frames else ()

    def notes(self) -> tuple[str, ...]:
        """Sentences about calls without lines."""
        notes = []
        if closed := len(self._closed):
            notes.append(f"{closed} compiled graphs were not opened: their code is not understood")
        if lost := sorted(self._present.lost):
            named = ", ".join(f"{file}:{line}" for file, line in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            notes.append(f"compiled code has lines of an older version, not shown: {named}{more}")
        return tuple(notes)
