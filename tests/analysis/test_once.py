"""Results that are worked out once a trace."""

import gc
import weakref

from traces import event, make_trace

from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import Trace


def test_a_result_is_made_once_for_each_trace_and_arguments() -> None:
    made: list[tuple[int, bool]] = []

    @once_a_trace
    def lengths(trace: Trace, twice: bool = False) -> int:
        made.append((len(trace), twice))
        return len(trace) * (1 + twice)

    one, two = make_trace([event("a", 0, 1)]), make_trace([event("a", 0, 1), event("b", 2, 3)])

    assert [lengths(one), lengths(one), lengths(one, True), lengths(two), lengths(one, True)] == [1, 1, 2, 2, 2]
    assert made == [(1, False), (1, True), (2, False)]


def test_a_result_goes_with_its_trace() -> None:
    names = once_a_trace(lambda trace: set(trace.names))
    trace = make_trace([event("a", 0, 1)])
    result, gone = weakref.ref(names(trace)), weakref.ref(trace)
    del trace
    gc.collect()

    assert (result(), gone()) == (None, None)
