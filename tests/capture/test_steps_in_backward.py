"""Steps of optimizers inside backward passes, and passes inside steps, with times put in by hand."""

from recording import buffer, frozen, new_thread, op, scope

from mtprof_nb.capture.buffers.autograd_links import (
    NODE_WITHOUT_NUMBER,
    NOT_IN_BACKWARD,
    link_by_node,
    link_by_sequence_nr,
)
from mtprof_nb.model.trace import PHASES


def test_of_a_step_and_a_backward_pass_the_inner_one_counts() -> None:
    filled = buffer("counter", "node")
    main = new_thread(filled)
    op(main, "mm", 0, 1, 1, NOT_IN_BACKWARD)
    scope(main, "Optimizer.step#Outer.step", 10, 100)
    op(main, "aten.ones_like.default", 11, 12, 1, NOT_IN_BACKWARD)
    op(main, "of mm", 13, 14, 1, 0)
    scope(main, "Optimizer.step#Inner.step", 20, 50, node=0)
    op(main, "of inner step", 21, 22, 1, 0)
    op(main, "of inner pass", 23, 24, 1, NODE_WITHOUT_NUMBER - 7)
    op(main, "of mm again", 60, 61, 1, 0)
    scope(main, "Optimizer.step#Inner.step", 70, 80, node=NODE_WITHOUT_NUMBER - 3)
    op(main, "of inner step", 71, 72, 1, NODE_WITHOUT_NUMBER - 3)
    op(main, "of inner pass", 73, 74, 1, NODE_WITHOUT_NUMBER - 4)
    op(main, "of outer step", 90, 91, 1, NOT_IN_BACKWARD)
    trace = frozen(filled, link=link_by_sequence_nr)

    inner = ["optimizer", "optimizer", "backward"]
    expected = ["forward", "optimizer", "backward", "backward", *inner, "backward", *inner, "optimizer"]
    assert [PHASES[phase] for phase in trace.phase] == expected
    assert trace.forward.tolist() == [-1, -1, -1, 0, -1, -1, -1, 0, -1, -1, -1, -1]
    assert trace.sequence_nr.tolist() == [0, -1, -1, 0, -1, -1, -1, 0, -1, -1, -1, -1]


def test_a_step_inside_a_pass_over_nodes_counts_and_so_does_a_pass_inside_that_step() -> None:
    filled = buffer()
    main = new_thread(filled)
    main.backward += [40, 50, 10, 100]
    op(main, "of pass", 20, 21)
    scope(main, "Optimizer.step#SGD.step", 30, 60)
    op(main, "of step", 31, 32)
    op(main, "of inner pass", 41, 42)
    op(main, "of step", 51, 52)
    op(main, "of pass", 70, 71)
    trace = frozen(filled, link=link_by_node)

    expected = ["backward", "optimizer", "optimizer", "backward", "optimizer", "backward"]
    assert [PHASES[phase] for phase in trace.phase] == expected
