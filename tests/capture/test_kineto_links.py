"""Links from autograd nodes to forward ops, on hand-made events of Kineto."""

from kineto_made_by_hand import ACCESSORS, Event, columns_of, node, op

from mtprof_nb.building.autograd_nodes import link
from mtprof_nb.capture.kineto.kineto_events import forward_threads
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE

COPY_SLICES = "torch::autograd::CopySlices"
COPY_BACKWARDS = "torch::autograd::CopyBackwards"


def forward_of(*events: Event | list[Event]) -> dict[str, str | None]:
    """The name of the forward op by the name of each autograd node, which the engine's event around it shares."""
    columns = columns_of(*events)
    found = link(columns, forward_threads(columns, ACCESSORS))
    names = [columns.names[name] for name in columns.name]
    makers = {
        name: names[found.forward[row]] if found.forward[row] >= 0 else None
        for row, name in enumerate(names)
        if found.node[row] >= 0
    }
    own = {name: maker for name, maker in makers.items() if not name.startswith(ENGINE)}
    assert {name.removeprefix(ENGINE): maker for name, maker in makers.items() if name not in own} == own
    return own


def test_every_node_of_a_write_into_a_view_is_of_the_op_that_wrote() -> None:
    found = forward_of(
        op("aten::tanh", 0, 10, 7),
        op("aten::select", 10, 20, 8),
        op("aten::copy_", 20, 30, 8),
        op("aten::exp", 30, 40, 11),
        node("ExpBackward0", 100, 110, 11),
        node("AsStridedBackward0", 110, 120, 10),
        node(COPY_SLICES, 120, 140, 9),
        node(COPY_BACKWARDS, 130, 138, 8),
        node("TanhBackward0", 140, 150, 7),
    )

    assert found == {
        "ExpBackward0": "aten::exp",
        "AsStridedBackward0": "aten::copy_",
        COPY_SLICES: "aten::copy_",
        COPY_BACKWARDS: "aten::copy_",
        "TanhBackward0": "aten::tanh",
    }


def test_the_last_op_of_all_may_have_made_several_nodes() -> None:
    found = forward_of(op("aten::mul_", 0, 10, 3), node(COPY_SLICES, 20, 30, 4), node("MulBackward0", 30, 40, 3))

    assert found == {COPY_SLICES: "aten::mul_", "MulBackward0": "aten::mul_"}


def test_a_node_older_than_the_recording_has_no_forward_op() -> None:
    found = forward_of(op("aten::exp", 0, 10, 5), node("ExpBackward0", 20, 30, 5), node(COPY_SLICES, 30, 40, 4))

    assert found == {"ExpBackward0": "aten::exp", COPY_SLICES: None}


def test_a_number_counts_on_its_own_thread_alone() -> None:
    found = forward_of(
        op("aten::mul_", 0, 10, 50, thread=1),
        op("aten::add_", 0, 10, 3, thread=2),
        node(COPY_SLICES, 20, 30, 4, made_on=2),
        node("older on thread 2", 30, 40, 2, made_on=2),
        node("of a thread that was not recorded", 40, 50, 60, made_on=3),
        node("older on thread 1", 50, 60, 49, made_on=1),
    )

    assert found == {
        COPY_SLICES: "aten::add_",
        "older on thread 2": None,
        "of a thread that was not recorded": None,
        "older on thread 1": None,
    }


def test_a_node_that_no_op_makes_belongs_to_none() -> None:
    found = forward_of(
        op("aten::sum", 0, 10, 5),
        node("torch::autograd::GraphRoot", 20, 30, 7),
        node("torch::autograd::CppNode<Mine>", 30, 40, 6),
        node("SumBackward0", 40, 50, 5),
    )

    assert found == {
        "torch::autograd::GraphRoot": None,
        "torch::autograd::CppNode<Mine>": None,
        "SumBackward0": "aten::sum",
    }


def test_a_function_written_in_cpp_that_is_an_op_has_its_forward_op() -> None:
    found = forward_of(op("mine::roll", 0, 10, 5), node("torch::autograd::CppNode<Roll>", 20, 30, 5))

    assert found == {"torch::autograd::CppNode<Roll>": "mine::roll"}


def test_the_node_of_a_script_is_of_the_ops_that_it_runs_as_one() -> None:
    node_of_script = "torch::jit::(anonymous namespace)::DifferentiableGraphBackward"
    found = forward_of(
        op("aten::exp", 0, 10, 5),
        op("scripted", 20, 60, -1),
        op("aten::detach", 22, 24, 7),
        op("<forward op>", 25, 50, -1),
        op("aten::mul", 30, 35, 7),
        op("aten::sum", 70, 80, 7),
        node("SumBackward0", 100, 110, 7),
        node(node_of_script, 110, 120, 6),
        node("ExpBackward0", 120, 130, 5),
    )

    assert found == {"SumBackward0": "aten::sum", node_of_script: "<forward op>", "ExpBackward0": "aten::exp"}
