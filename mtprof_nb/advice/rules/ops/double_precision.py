"""Ops on float64 tensors in a program that uses float32, or that nobody asked to use float64."""

from __future__ import annotations

import re

import numpy as np

from mtprof_nb.advice.causes.source_text import code_has
from mtprof_nb.advice.causes.tensor_inputs import is_pointwise, with_inputs
from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import rule
from mtprof_nb.analysis.costs import counted_ops
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.program_time.recorded_time import of_recorded, slowest_line
from mtprof_nb.analysis.program_time.spent_time import spent_ns
from mtprof_nb.model.trace import BACKWARD, Bool, Trace

_DOUBLE, _FLOAT = ("double", "float64"), ("float", "float32")
#: Words of a program that chooses float64 itself.
_CHOICE = re.compile(r"\b(?:float64|double|set_default_dtype|complex128)\b")
_FIX_MIXED = """\
# numpy makes float64: convert once, where the tensor is made
x = torch.as_tensor(array, dtype=torch.float32)"""


@rule
def float64_in_float32(trace: Trace) -> Finding | None:
    """Find the first line on which a float32 tensor meets a float64 one, so that the result is float64."""
    is_double, meets = _with_double(trace), _meeting(trace)
    double_ns = spent_ns(trace, is_double)
    if not meets.any() or _is_chosen(trace, is_double):
        return None
    event = int(np.flatnonzero(meets)[0])
    line, lines = int(attribution(trace).line[event]), attribution(trace).lines
    return Finding(
        "float32 becomes float64 here",
        f"{trace.names[trace.name[event]]} gets float32 and float64 tensors, so its result is float64; "
        f"ops on float64 take {of_recorded(trace, double_ns)}.",
        _FIX_MIXED,
        lines[line] if line >= 0 else None,
        at_most_ns=double_ns,
        certainty=CERTAIN,
    )


@rule
def float64_everywhere(trace: Trace) -> Finding | None:
    """Find a program that computes in float64 alone, although no recorded source asks for it."""
    is_double, is_float = _with_double(trace), counted_ops(trace) & _has(trace, _FLOAT)
    double_ns = spent_ns(trace, is_double)
    # float64 by accident comes from numpy, float64 by choice from a type that the recorded source names.
    if not trace.sources or _is_chosen(trace, is_double) or spent_ns(trace, is_float) > double_ns / 20:
        return None
    # Parameters of modules are float32, unless the program asks for another type.
    if trace.module is not None and np.any(is_double & (trace.module >= 0)):
        return None
    return Finding(
        "All of this is computed in float64",
        f"Ops on float64 tensors take {of_recorded(trace, double_ns)}, and the recorded source asks for it nowhere; "
        "numpy's arrays are float64.",
        _FIX_MIXED,
        slowest_line(trace, is_double),
        at_most_ns=double_ns,
    )


def _is_chosen(trace: Trace, is_double: Bool) -> bool:
    """Whether a file whose lines ran ops on float64 names that type."""
    caused = attribution(trace)
    lines = set(caused.line[is_double].tolist()) - {-1}
    return code_has(trace, {caused.lines[line].file for line in lines}, _CHOICE)


def _with_double(trace: Trace) -> Bool:
    return counted_ops(trace) & trace.where_name(lambda name: name.startswith("aten::")) & _has(trace, _DOUBLE)


def _meeting(trace: Trace) -> Bool:
    """Pointwise ops of the forward pass that get float32 and float64 tensors: their result is float64."""
    is_candidate: Bool = counted_ops(trace) & is_pointwise(trace) & (trace.phase != BACKWARD)
    return is_candidate & _has(trace, _DOUBLE) & _has(trace, _FLOAT)


def _has(trace: Trace, dtypes: tuple[str, ...]) -> Bool:
    """The events with a tensor of one of these types and at least one dimension."""
    return with_inputs(trace, lambda inputs: any(one.dtype in dtypes and one.shape for one in inputs))
