"""The numbers of findings about memory, on hand-made traces."""

from rows_by_hand import LINE, MS, only
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.model.trace import SourceLine, Trace

MIB = 1 << 20


def _steps(kept: list[int], scope: str = "Optimizer.step#SGD.step") -> Trace:
    """Steps of an optimizer, each after an op that allocates so many MiB and keeps them."""
    rows: list[Row] = []
    held: list[Row] = []
    for at, size in enumerate(kept):
        start = 10 * at * MS
        rows += [event("aten::relu", start, start + 5 * MS, line=LINE)]
        rows += [event(scope, start + 5 * MS, start + 9 * MS, kind="scope")]
        held += [{"time_ns": start + 1, "nbytes": size * MIB, "address": at + 1, "event": 2 * at}] * (size > 0)
    return make_trace(rows, held)


def test_memory_grows_if_every_step_keeps_some() -> None:
    finding = only(_steps([8, 2, 2, 2, 2, 2]))

    assert finding.rule == "grows_each_step"
    assert finding.at_most_bytes == (8 + 5 * 2) * MIB
    assert finding.line == SourceLine(*LINE)
    assert finding.evidence == (
        "In each of 4 steps about 2.00 MiB are allocated and not released: 8.00 MiB of 18.0 MiB at the peak."
    )


def test_memory_of_the_first_or_of_few_steps_does_not_grow() -> None:
    assert advise(_steps([8, 0, 0, 0, 0, 2])) == ()
    assert advise(_steps([8, 2, 0, 2, 0, 2])) == ()
    assert advise(_steps([8, 2, 0, 0, 0, 2])) == ()
    assert advise(_steps([2, 2, 2])) == ()
    assert advise(_steps([8, 2, 2, 2, 2, 2], "other scope")) == ()


def _training(mib: int, sequence_nr: int) -> Trace:
    rows = [
        event("aten::relu", 0, 10 * MS, line=LINE, sequence_nr=1),
        event("ReluBackward0", 10 * MS, 20 * MS, phase="backward", sequence_nr=1, forward=0 if sequence_nr else -1),
    ]
    held = [
        {"time_ns": 1, "nbytes": mib * MIB, "address": 1, "event": 0},
        {"time_ns": 15 * MS, "nbytes": -mib * MIB, "address": 1, "event": 1},
    ]
    return make_trace(rows, held)


def test_activations_are_half_of_a_large_peak() -> None:
    finding = only(_training(256, 1))

    assert finding.rule == "activations_at_peak"
    assert finding.at_most_bytes == 256 * MIB
    assert finding.line == SourceLine(*LINE)
    assert advise(_training(255, 1)) == ()
    assert advise(_training(256, 0)) == ()


def _evaluation(lines: dict[int, int], trained: int, links: bool = True) -> Trace:
    """Four forward ops from each of `lines`, which hold MiB until the next one; line `trained` has a backward pass."""
    rows: list[Row] = []
    held: list[Row] = []
    for number, (line, mib) in enumerate(lines.items()):
        for at in range(10 * number, 10 * number + 5):
            rows += [
                event("aten::relu", at * MS, (at + 1) * MS, line=("cell.py", line), phase="forward", sequence_nr=at)
            ]
        start = 10 * number * MS
        held += [{"time_ns": start + 1, "nbytes": mib * MIB, "address": number + 1, "event": 5 * number}]
        held += [{"time_ns": start + 9 * MS, "nbytes": -mib * MIB, "address": number + 1, "event": -1}]
    first = 5 * list(lines).index(trained)
    for at in range(5):
        link = {"sequence_nr": int(rows[first + at]["sequence_nr"]), "forward": first + at if links else -1}
        rows += [event("ReluBackward0", (40 + at) * MS, (41 + at) * MS, phase="backward", **link)]
    return make_trace(rows, held)


def test_gradients_are_for_nothing_on_a_line_from_which_no_graph_has_a_backward_pass() -> None:
    finding = only(_evaluation({2: 1, 3: 8}, trained=2))

    assert (finding.rule, finding.line) == ("missing_no_grad", SourceLine("cell.py", 3))
    assert finding.at_most_bytes == 8 * MIB
    assert (
        finding.evidence == "4 ops kept inputs for a backward pass that did not come: 8.00 MiB of 8.00 MiB at the peak."
    )


def test_gradients_are_not_for_nothing_if_the_graph_has_a_backward_pass_or_this_is_not_known() -> None:
    assert advise(_evaluation({3: 8}, trained=3)) == ()
    assert advise(_evaluation({2: 8, 3: 1}, trained=2)) == ()
    assert advise(_evaluation({2: 1, 3: 8}, trained=2, links=False)) == ()
    assert advise(make_trace([event("aten::mm", 0, MS, phase="backward")], [])) == ()


def _passes(count: int, kept: int) -> Trace:
    """Passes of six ops on lines of their own; all results are released but the last of each of the last `kept`."""
    rows: list[Row] = []
    held: list[Row] = []
    for at in range(6 * count):
        line, is_result = ("net.py", at % 6), at % 6 == 5 and at >= 6 * (count - kept)
        rows += [event("aten::add", at * MS, (at + 1) * MS, line=line, phase="forward", sequence_nr=at)]
        held += [{"time_ns": at * MS + 1, "nbytes": 8 * MIB, "address": at + 1, "event": at}]
        held += [{"time_ns": 6 * count * MS + 1, "nbytes": -8 * MIB, "address": at + 1, "event": -1}] * (not is_result)
    return make_trace(rows, sorted(held, key=lambda row: row["time_ns"]), ended_ns=(6 * count + 1) * MS)


def test_gradients_may_have_their_backward_pass_later_while_the_only_result_is_held() -> None:
    # The backward pass of `out = model(x)` may be in the next cell, whatever the pass released.
    assert advise(_passes(1, kept=1)) == ()
    assert advise(_passes(4, kept=4)) == ()
    assert [only(_passes(4, kept=kept)).certainty for kept in (0, 1, 2)] == ["certain", "likely", "likely"]
    assert only(_passes(1, kept=0)).title == "Gradients are recorded here and never used"
