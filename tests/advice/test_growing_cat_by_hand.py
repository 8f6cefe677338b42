"""The numbers of findings about tensors that grow by `cat`, on hand-made traces."""

from rows_by_hand import LINE, MS, only
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.model.trace import Trace


def _cats(sizes: list[int], allocations: list[Row] | None = None) -> Trace:
    rows = [
        event("aten::cat", at * MS, (at + 1) * MS, shapes=(((size, 8), (1, 8)), ()), dtypes=("", ""), line=LINE)
        for at, size in enumerate(sizes)
    ]
    return make_trace(rows, allocations)


def test_a_tensor_grows_by_cat_if_each_call_begins_with_the_result_of_an_earlier_one() -> None:
    finding = only(_cats(list(range(1, 19))))

    assert finding.rule == "grows_by_cat"
    assert (finding.at_most_ns, finding.certainty) == (17 * MS, "likely")
    assert only(_cats([size for size in range(1, 19) for _ in "kv"])).at_most_ns == 34 * MS
    assert advise(_cats([17] * 18)) == ()
    assert advise(_cats(list(range(1, 17)))) == ()


def test_a_tensor_grows_again_after_a_new_beginning() -> None:
    assert only(_cats([*range(1, 19), *range(1, 20)])).at_most_ns == (17 + 18) * MS
    assert only(_cats([*range(1, 19), *range(1, 10)])).at_most_ns == 17 * MS
    # Beside it, the line joins other tensors: one in each pass.
    assert only(_cats([size for at in range(1, 19) for size in (at, 40)])).at_most_ns == 17 * MS


def test_tensors_of_many_sizes_with_a_row_each_do_not_grow() -> None:
    assert advise(_cats([20 + at * at % 41 for at in range(1_000)])) == ()
    assert advise(_cats([*range(20, 36)] * 10)) == ()


def test_a_result_of_cat_that_was_released_does_not_grow() -> None:
    def recorded(held_ms: int) -> Trace:
        made = [{"time_ns": at * MS, "nbytes": 32, "address": at + 1, "event": at} for at in range(18)]
        gone = [{"time_ns": (at + held_ms) * MS, "nbytes": -32, "address": at + 1} for at in range(18)]
        return _cats(list(range(1, 19)), sorted(made + gone, key=lambda row: row["time_ns"]))

    assert only(recorded(2)).at_most_ns == 17 * MS
    assert advise(recorded(1)) == ()
