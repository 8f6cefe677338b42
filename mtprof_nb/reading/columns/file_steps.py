"""The profiler step of each event, from the scopes of steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mtprof_nb.model.schema import Int8, Int32, Int64
from mtprof_nb.model.trace import SCOPE, STEP_PREFIX

_STEP = re.compile(re.escape(STEP_PREFIX) + r"(\d{1,9})")


def steps(start_ns: Int64, kind: Int8, name: Int32, names: Sequence[str], process: Int32) -> Int32:
    """The number of the step that began last; of the first step for what came before it; 0 without steps."""
    number = np.array([int(match[1]) if (match := _STEP.fullmatch(text)) else -1 for text in names] or [-1], np.int32)
    found = np.zeros(len(start_ns), np.int32)
    is_step = (kind == SCOPE) & (number[name] >= 0)
    for one in np.unique(process[is_step]).tolist():
        begins = np.flatnonzero(is_step & (process == one))
        here = process == one
        last = np.searchsorted(start_ns[begins], start_ns[here], "right") - 1
        found[here] = number[name[begins[np.maximum(last, 0)]]]
    return found
