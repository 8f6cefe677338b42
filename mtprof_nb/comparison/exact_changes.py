"""Changes that need no statistics: figures, ops, kernels, shapes, types and lines that are new, gone or more often."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtprof_nb.analysis.costs import op_costs
from mtprof_nb.analysis.groups import group
from mtprof_nb.analysis.shape_texts import shapes_text
from mtprof_nb.analysis.summary import summary
from mtprof_nb.comparison.joined_rows import Difference, shift_of_ranges
from mtprof_nb.comparison.sides import Side, Sides, has_bytes, has_device_work, has_shapes
from mtprof_nb.model.trace import OP, Trace

#: A change of bytes below this share is not reported: allocators round.
_SAME_BYTES = 0.001


@dataclass(frozen=True)
class Change:
    """Something that differs between the two programs, whatever the noise."""

    #: "figure", "op", "kernel", "line", "shapes" or "types".
    kind: str
    #: The figure, op, kernel or text of the line.
    name: str
    #: Number or text on each side; None if the side does not have it.
    a: float | str | None
    b: float | str | None
    #: "new", "gone", "called more often", "called less often", "edited" or "".
    change: str = ""
    #: Device of an op, source locations of a line; of a figure "count", "bytes" or "flops".
    detail: str = ""


def exact_changes(sides: Sides, differences: Iterable[Difference]) -> list[Change]:
    """All changes: figures first, then ops, kernels, lines, shapes and types, the largest first."""
    if not sides.is_complete:
        return []
    changes = [*_figures(sides), *(_of_row(row) for row in differences if row.change and row.level != "phase")]
    if sides.have(has_shapes):
        changes += _input_changes(sides)
    return changes


class _Figure(NamedTuple):
    """A number of a recording that does not depend on time."""

    name: str
    unit: str
    value: Callable[[Trace], int | None]
    has: Callable[[Trace], bool]
    #: Whether it grows with the number of steps.
    is_sum: bool = True


_FIGURES = (
    _Figure("ops", "count", lambda run: summary(run).ops, lambda _: True),
    _Figure("kernels, copies and sets", "count", lambda run: int(run.is_device_work.sum()), has_device_work),
    _Figure(
        "allocated", "bytes", lambda run: _allocated(run), lambda run: has_bytes(run) and run.allocations is not None
    ),
    _Figure("peak memory", "bytes", lambda run: summary(run).peak_bytes, has_bytes, is_sum=False),
    _Figure("FLOPs", "flops", lambda run: _flops(run), lambda run: run.flops is not None),
)


def known_figures(sides: Sides) -> set[str]:
    """Names of the figures that can be compared: no run lacks them."""
    return {figure.name for figure in _FIGURES if sides.is_complete and sides.have(figure.has)}


def _figures(sides: Sides) -> Iterator[Change]:
    known = known_figures(sides)
    for figure in _FIGURES:
        if figure.name not in known:
            continue
        a, b = (
            np.array([(figure.value(run) or 0) / (sides.divisor(run) if figure.is_sum else 1) for run in side.runs])
            for side in sides.both
        )
        middle_a, middle_b = float(np.median(a)), float(np.median(b))
        is_rounding = figure.unit == "bytes" and abs(middle_b - middle_a) <= _SAME_BYTES * max(middle_a, middle_b)
        if shift_of_ranges(a, b) and not is_rounding:
            yield Change("figure", figure.name, middle_a, middle_b, detail=figure.unit)


def _allocated(run: Trace) -> int:
    records = run.allocations
    return 0 if records is None else int(records.nbytes[records.nbytes > 0].sum())


def _flops(run: Trace) -> int:
    return 0 if run.flops is None else int(np.maximum(run.flops, 0).sum())


def _of_row(row: Difference) -> Change:
    return Change(row.level, row.name, row.a_calls, row.b_calls, row.change, row.detail)


Inputs = tuple[Any, Any]


def _input_changes(sides: Sides) -> Iterator[Change]:
    """Ops of both sides that got inputs on one side which they did not get on the other."""
    a, b = _inputs(sides.a), _inputs(sides.b)
    for op in (op for op in a if op in b):
        a_only, b_only = a[op] - b[op], b[op] - a[op]
        if not a_only and not b_only:
            continue
        same_shapes = {shapes for shapes, _ in a[op]} == {shapes for shapes, _ in b[op]}
        kind, write = ("types", _types_text) if same_shapes else ("shapes", _shapes_text)
        a_text, b_text = (_listed(write(inputs) for inputs in sorted(only, key=repr)) for only in (a_only, b_only))
        yield Change(kind, str(op[0]), a_text, b_text)


def _inputs(side: Side) -> dict[tuple[Hashable, ...], set[Inputs]]:
    """For each op, the shapes and types of the inputs that it got in any run."""
    inputs: dict[tuple[Hashable, ...], set[Inputs]] = {}
    for run in side.runs:
        ops = np.flatnonzero(run.kind == OP)
        grouped = group(run, "name", "device", "shapes", "types", costs=op_costs(run), positions=ops)
        for name, device, shapes, types in grouped.values(run):
            inputs.setdefault((name, device), set()).add((shapes, types))
    return inputs


def _shapes_text(inputs: Inputs) -> str:
    return shapes_text(inputs[0] or ()) or "none"


def _types_text(inputs: Inputs) -> str:
    return " ".join(filter(None, inputs[1] or ())) or "none"


def _listed(texts: Iterable[str], most: int = 3) -> str | None:
    """The first texts, and how many more there are; None without any."""
    distinct = list(dict.fromkeys(texts))
    more = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    return "; ".join(distinct[:most]) + more or None
