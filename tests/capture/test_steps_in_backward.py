"""Steps of optimizers inside backward passes, and passes inside steps, with times put in by hand."""

from recording import buffer, frozen, new_thread, op, scope

from mtprof_nb.capture.buffers.autograd_links import link_by_node
from mtprof_nb.model.trace import PHASES


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
