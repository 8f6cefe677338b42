"""Costs of the optimizer for each parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.analysis.costs import counted_ops, op_costs
from mtprof_nb.analysis.groups import sums
from mtprof_nb.model.trace import OPTIMIZER, Bool, Trace


@dataclass(frozen=True)
class ParameterCost:
    """Cost of the optimizer's ops for one parameter; `parameter` is "" for ops whose parameter is unknown."""

    parameter: str
    #: Path of the module that holds the parameter, "" if unknown.
    module: str
    self_ns: int
    count: int


def parameter_costs(trace: Trace, among: Bool | None = None) -> list[ParameterCost]:
    """Costs of the optimizer by parameter, the largest first; only of events in `among`, if given.

    Ops without a known parameter come last; without recorded shapes, these are all.
    """
    rows = np.flatnonzero((trace.phase == OPTIMIZER) & counted_ops(trace) & (True if among is None else among))
    known = np.full(len(trace), -1, np.int32) if trace.parameter is None else trace.parameter
    names = (*trace.parameters, "")
    self_ns = sums(known[rows], op_costs(trace).self_ns[rows], len(names))
    count = sums(known[rows], np.ones_like(rows), len(names))
    costs = [
        ParameterCost(name, name.rpartition(".")[0], int(self_ns[index]), int(count[index]))
        for index, name in enumerate(names)
        if count[index]
    ]
    return sorted(costs, key=lambda cost: (cost.parameter == "", -cost.self_ns, cost.parameter))
