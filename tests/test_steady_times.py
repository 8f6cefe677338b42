"""Times of alike pieces of a recording, made steady."""

from dataclasses import replace

import numpy as np
from steady_times import steady
from traces import event, make_trace

from mtprof_nb.model.trace import Collections


def test_alike_pieces_of_time_are_as_long_as_the_shortest() -> None:
    rows = [event("a", 10, 30), event("b", 35, 95), event("a", 100, 110), event("b", 170, 180), event("c", 185, 300)]
    ran = Collections(np.array([115]), np.array([40]), np.zeros(1, np.int8), np.zeros(1, np.int32))

    trace = steady(replace(make_trace(rows, began_ns=0, ended_ns=310), collections=ran))

    assert trace.start_ns.tolist() == [10, 25, 40, 55, 70]
    assert trace.duration_ns.tolist() == [10, 10, 10, 10, 115]
    assert trace.ended_ns == 195
    assert trace.collections is not None
    assert (trace.collections.start_ns.tolist(), trace.collections.duration_ns.tolist()) == ([50], [4])
