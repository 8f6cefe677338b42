"""Regions of `torch.compile` as they run: kernels, the wrapper that calls them, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.groups import Key, number_combinations
from mtprof_nb.analysis.nesting import nest
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.source_files import line_label
from mtprof_nb.model.trace import OP, SCOPE, Bool, Int32, Trace

_REGION, _BACKWARD = "Torch-Compiled Region", "CompiledFunctionBackward"
_WRAPPER = "## Call CompiledFxGraph"
#: Events that torch opens around the wrapper; their time is the rest of a region.
_AROUND = (_REGION, "CompiledFunction", "Pregraph bytecode", "AOTDispatcher", "TorchDynamo")


class RegionPart(NamedTuple):
    """A part of a region: a call by its name, "wrapper", or "" for the rest."""

    region: str
    part: str
    #: The user's lines that a call computes, and of a fused kernel the ops of each.
    lines: str


def has_regions(trace: Trace) -> bool:
    """Whether compiled code ran in a recording."""
    return bool(_begins(trace).any())


def _begins(trace: Trace) -> Bool:
    return trace.where_name(lambda name: name.startswith(_REGION) or name == _BACKWARD)


@once_a_trace
def _parts(trace: Trace) -> tuple[Int32, tuple[RegionPart, ...]]:
    """For each event the number of the part that it ran in, -1 outside regions; and the parts."""
    region, call = _regions_and_calls(trace)
    rows = np.flatnonzero(region >= 0)
    titles, title = _titles(trace, region)
    is_wrapper = trace.where_name(lambda name: name.startswith(_WRAPPER))[rows]
    stack = np.full(len(trace), -1, np.int32) if trace.stack is None else trace.stack
    is_call = call[rows] >= 0
    name = np.where(is_call, trace.name[call[rows]], np.where(is_wrapper, -2, -1))
    columns = [title[region[rows]], name, np.where(is_call, stack[call[rows]], -1)]
    code, first, _ = number_combinations(columns)
    known: dict[RegionPart, int] = {}
    numbers = []
    for one, named, at in zip(*(column[first].tolist() for column in columns), strict=True):
        part = trace.names[named] if named >= 0 else "wrapper" * (named == -2)
        made = RegionPart(titles[one], part, _lines(trace, at, part))
        numbers.append(known.setdefault(made, len(known)))
    number = np.full(len(trace), -1, np.int32)
    number[rows] = np.array(numbers, np.int32)[code]
    return number, tuple(known)


def _regions_and_calls(trace: Trace) -> tuple[Int32, Int32]:
    """For each event the innermost region around it, and the call of the region; -1 for none."""
    begins = _begins(trace)
    around = trace.where_name(lambda name: name.startswith((*_AROUND, _WRAPPER)))
    runs = np.isin(trace.kind, (OP, SCOPE)) & ~trace.is_async & ~trace.on_device
    own = np.arange(len(trace), dtype=np.int32)
    region = np.where(begins & runs, own, np.int32(-1))
    call = np.full(len(trace), -1, np.int32)
    nested = nest(trace, runs)
    for level in nested.levels()[1:]:
        inner = level[~begins[level]]
        above = nested.parent[inner]
        region[inner], call[inner] = region[above], call[above]
        begun = inner[(region[inner] >= 0) & (call[inner] < 0) & ~around[inner]]
        call[begun] = begun
    return region, call


def _titles(trace: Trace, region: Int32) -> tuple[list[str], Int32]:
    """Titles of regions, and for each event that begins one the position of its title.

    A region of the backward pass has the number of the forward region that it belongs to.
    """
    known: dict[str, int] = {}
    number = np.full(len(trace), -1, np.int32)
    for row in np.flatnonzero(region == np.arange(len(trace))).tolist():
        forward = trace.forward.item(row)
        of_forward = row if trace.names[trace.name.item(row)] != _BACKWARD else -1
        if of_forward < 0 and forward >= 0:
            of_forward = region.item(forward)
        name = trace.names[trace.name.item(of_forward)] if of_forward >= 0 else _REGION
        title = name if of_forward == row else f"{name} backward"
        number[row] = known.setdefault(title.removeprefix("Torch-Compiled "), len(known))
    return list(known), number


def _lines(trace: Trace, stack: int, name: str) -> str:
    """As "net.py:5 (exp), net.py:6 (mul 3 times)", the largest part first; "" if not known."""
    calls, tree = trace.compiled, trace.stacks
    if calls is None or tree is None:
        return ""
    texts = []
    for row in np.flatnonzero(calls.call == stack).tolist():
        frame = tree.frames[tree.frame.item(calls.stack.item(row))]
        ops = trace.names[calls.ops.item(row)]
        known = "" if ops in name.split("::") else f" ({ops})"
        texts.append(f"{line_label(trace, frame.file, frame.line)}{known}")
    return ", ".join(texts)


def _values(trace: Trace) -> Callable[[int], Hashable]:
    number, parts = _parts(trace)
    return lambda event: parts[number.item(event)] if number.item(event) >= 0 else None


#: The key of the parts of regions, by which events can be grouped.
REGION_PART = Key(lambda trace: _parts(trace)[0], _values)
