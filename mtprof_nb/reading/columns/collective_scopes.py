"""Collectives of older recordings, whose kernels do not tell what they are: the scope of their launch does."""

from __future__ import annotations

import numpy as np

from mtprof_nb.model.schema import Columns
from mtprof_nb.model.trace import COLLECTIVE, SCOPE, Collective
from mtprof_nb.reading.columns.chosen_spans import ChosenSpans

#: How the names of the scopes begin in which PyTorch starts a collective.
_PREFIXES = ("nccl:", "hccl:", "xccl:")


def named_by_scopes(file: ChosenSpans, made: Columns) -> Columns:
    """Facts of collectives for kernels without any, from the scope that was open at their launch."""
    known = made.get("collective")
    collective = np.full(len(file), -1, np.int32) if known is None else known
    rows = np.flatnonzero((made["kind"] == COLLECTIVE) & (collective < 0) & (made["launch"] >= 0))
    is_scope = np.array([name.startswith(_PREFIXES) for name in file.names] or [False], np.bool_)[file.name]
    is_scope &= file.kind == SCOPE
    if not len(rows) or not is_scope.any():
        return {}
    calls = made["launch"][rows]
    scopes = file.intervals.running(is_scope, file.tracks.track[calls], file.spans["start_ns"][calls])
    table = {one: place for place, one in enumerate(made["collectives"])}
    found = collective.copy()
    for row, scope in zip(rows.tolist(), scopes.tolist(), strict=True):
        if scope >= 0:
            name = file.names[file.name[scope]].partition(":")[2]
            found[row] = table.setdefault(Collective(name), len(table))
    return {"collective": found, "collectives": tuple(table)}
