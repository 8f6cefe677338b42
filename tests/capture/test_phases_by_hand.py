"""Which ops are forward, on hand-made events: every number on autograd's counter is known."""

import numpy as np
from kineto_made_by_hand import Event, made_on, node, op, recorded, scope

from mtprof_nb.building.autograd_nodes import link
from mtprof_nb.building.phases import settled
from mtprof_nb.building.thread_intervals import ThreadIntervals
from mtprof_nb.model.trace import BACKWARD, FORWARD, OPTIMIZER, OTHER, PHASES


def phases(*events: Event | list[Event], counter: int = 0) -> dict[str, str]:
    """Phases by name; `counter` is autograd's next number as the recording ended."""
    columns = recorded(*events)
    found = link(columns, made_on(*events), {0: counter})
    return {columns.names[name]: PHASES[phase] for name, phase in zip(columns.name, found.phase, strict=True)}


def test_an_op_is_forward_if_the_next_one_finds_a_larger_number() -> None:
    found = phases(
        op("randn", 0, 10),
        op("peeks", 10, 20, 5),
        op("linear", 20, 60, 5),
        op("t", 25, 30, 5),
        op("as_strided", 26, 28),
        op("addmm", 30, 50, 6),
        op("metric", 60, 70, 7),
        op("clip", 70, 80),
        counter=7,
    )

    forward = {"linear", "t", "as_strided", "addmm"}
    assert found == {name: "forward" if name in forward else "other" for name in found}


def test_the_last_op_made_a_node_if_the_counter_or_a_node_says_so() -> None:
    assert phases(op("mm", 0, 10, 5), op("exp", 10, 20, 6), counter=7)["exp"] == "forward"
    assert phases(op("mm", 0, 10, 5), op("exp", 10, 20, 6), counter=6)["exp"] == "other"
    assert phases(op("mm", 0, 10, 5), op("exp", 10, 20, 6), node("ExpBackward0", 30, 40, 6))["exp"] == "forward"


def test_the_number_of_the_node_above_several_roots_makes_no_op_forward() -> None:
    found = phases(
        op("sum", 0, 10, 5),
        op("metric", 10, 20, 6),
        node("torch::autograd::GraphRoot", 20, 30, 6),
        node("SumBackward0", 30, 40, 5),
        counter=7,
    )
    assert (found["sum"], found["metric"]) == ("forward", "other")


def test_a_loaders_ops_are_other_and_an_optimizers_its_own() -> None:
    found = phases(
        scope("enumerate(DataLoader)#It.__next__", 0, 20),
        op("stack", 5, 10, 4),
        op("mm", 20, 30, 5),
        scope("Optimizer.step#SGD.step", 40, 60),
        op("add_", 45, 50),
        counter=6,
    )
    assert [found[name] for name in ("stack", "mm", "add_")] == ["other", "forward", "optimizer"]


def test_of_a_step_and_a_backward_pass_the_inner_one_counts() -> None:
    events = (
        op("mm", 0, 10, 5),
        scope("Optimizer.step#Outer.step", 20, 200),
        node("MmBackward0", 30, 100, 5),
        op("of node", 35, 40),
        scope("Optimizer.step#Inner.step", 50, 90),
        op("of inner step", 55, 60),
        node("TBackward0", 65, 75, 4),
        op("of inner node", 68, 70),
        op("of node again", 92, 95),
        op("of outer step", 110, 120),
    )
    columns = recorded(*events)
    found = link(columns, made_on(*events))
    names = [columns.names[name] for name in columns.name]
    phase = dict(zip(names, (PHASES[one] for one in found.phase), strict=True))
    forward = dict(zip(names, found.forward.tolist(), strict=True))

    assert {name: phase[name] for name in names if name.startswith(("of", "Optimizer"))} == {
        "Optimizer.step#Outer.step": "optimizer",
        "of node": "backward",
        "Optimizer.step#Inner.step": "optimizer",
        "of inner step": "optimizer",
        "of inner node": "backward",
        "of node again": "backward",
        "of outer step": "optimizer",
    }
    assert (forward["of node"], forward["of inner step"], forward["of node again"]) == (0, -1, 0)


def test_where_nothing_is_of_training_every_undecided_op_is_forward() -> None:
    undecided, outside = np.array([True, True, False]), np.zeros(3, np.bool_)

    def of(*found: int, in_module: np.ndarray = outside) -> list[int]:
        return settled(np.array(found, np.int8), undecided, in_module).tolist()

    assert of(OTHER, OTHER, OTHER) == [FORWARD, FORWARD, OTHER]
    in_module = np.array([False, True, True])
    assert of(OTHER, OTHER, OTHER, in_module=in_module) == [FORWARD, FORWARD, OTHER]
    for phase in (FORWARD, BACKWARD, OPTIMIZER):
        assert of(OTHER, OTHER, phase) == [OTHER, OTHER, phase]
        assert of(OTHER, OTHER, phase, in_module=in_module) == [OTHER, FORWARD, phase]


def test_an_outermost_interval_is_chosen_with_all_that_is_in_it() -> None:
    starts, ends = np.array([0, 10, 20, 50, 60, 20]), np.array([40, 15, 30, 90, 70, 30])
    intervals = ThreadIntervals(starts, ends, np.array([0, 0, 0, 0, 0, 1], np.int32))
    mask, chosen = np.array([1, 1, 1, 1, 1, 1], bool), np.array([0, 0, 1, 0, 0, 0], bool)

    assert intervals.outermost(mask).tolist() == [0, 0, 0, 3, 3, 5]
    assert intervals.spread(mask, chosen).tolist() == [1, 1, 1, 0, 0, 0]
    assert intervals.spread(~chosen, chosen).tolist() == [0, 0, 0, 0, 0, 0]
