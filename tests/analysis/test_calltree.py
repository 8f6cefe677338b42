"""The tree of calls: scopes and ops as they nested, or source frames and the ops under them."""

import numpy as np
from traces import event, make_trace

from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.analysis.stacks.calltree import CallTree, call_tree
from mtprof_nb.model.trace import Trace


def nodes_by_name(trace: Trace, tree: CallTree) -> dict[str, tuple[str, int, int]]:
    """Path of each node: its parent's name, its own time and that with what it called."""

    def name(node: int) -> str:
        if node <= 0:
            return "root"
        if tree.frame[node] >= 0 and trace.stacks is not None:
            return str(trace.stacks.frames[tree.frame[node]])
        return trace.names[trace.name[tree.event[node]]]

    own = tree.own(np.asarray(trace.duration_ns - _inside(trace)))
    total = tree.with_callees(own)
    return {
        name(node): (name(int(tree.parent[node])), int(own[node]), int(total[node])) for node in range(1, len(tree))
    }


def _inside(trace: Trace) -> np.ndarray:
    return trace.duration_ns - nesting(trace).self_ns


def test_without_stacks_scopes_and_ops_hang_where_they_ran_and_calls_are_summed() -> None:
    trace = make_trace(
        [
            event("step", 0, 100, kind="scope"),
            event("linear", 10, 40),
            event("mm", 15, 35),
            event("linear", 50, 90),
            event("mm", 55, 85),
        ]
    )

    assert nodes_by_name(trace, call_tree(trace)) == {
        "step": ("root", 30, 100),
        "linear": ("step", 20, 70),
        "mm": ("linear", 50, 50),
    }


def test_with_stacks_ops_hang_under_their_frames_and_scopes_do_not_count() -> None:
    run, top = ("f.py", 3, "run"), ("f.py", 9, "<module>")
    trace = make_trace(
        [
            event("step", 0, 100, kind="scope", stack=[top]),
            event("linear", 10, 40, stack=[run, top]),
            event("mm", 15, 35, stack=[run, top]),
            event("add", 50, 60, stack=[top]),
        ]
    )

    assert nodes_by_name(trace, call_tree(trace)) == {
        "f.py:9:<module>": ("root", 0, 40),
        "f.py:3:run": ("f.py:9:<module>", 0, 30),
        "linear": ("f.py:3:run", 10, 30),
        "mm": ("linear", 20, 20),
        "add": ("f.py:9:<module>", 10, 10),
    }


def test_what_a_hidden_frame_called_hangs_on_its_caller_and_what_is_then_the_same_is_one_node() -> None:
    top, one, other, deep = ("f.py", 9, "main"), ("lib.py", 1, "pass_on"), ("lib.py", 2, "pass_on"), ("g.py", 4, "work")
    trace = make_trace([event("mm", 0, 30, stack=[deep, one, top]), event("mm", 40, 50, stack=[deep, other, top])])

    assert nodes_by_name(trace, call_tree(trace, hidden=lambda frame: frame.function == "pass_on")) == {
        "f.py:9:main": ("root", 0, 40),
        "g.py:4:work": ("f.py:9:main", 0, 40),
        "mm": ("g.py:4:work", 40, 40),
    }
    assert len(call_tree(trace)) == 8


def test_frames_of_one_library_that_call_each_other_or_have_one_caller_are_one_node() -> None:
    top, fit, run, other = ("f.py", 9, "main"), ("lib.py", 1, "fit"), ("lib.py", 2, "run"), ("lib.py", 3, "other")
    mine = ("g.py", 4, "work")
    trace = make_trace(
        [
            event("mm", 0, 30, stack=[run, fit, top]),
            event("mm", 40, 50, stack=[other, top]),
            event("add", 60, 70, stack=[mine, run, fit, top]),
            event("sub", 80, 90, stack=[run, mine, run, fit, top]),
        ]
    )
    tree = call_tree(trace, library=lambda frame: "lib" if frame.file == "lib.py" else "")

    assert nodes_by_name(trace, tree) == {
        "f.py:9:main": ("root", 0, 60),
        "lib.py:1:fit": ("f.py:9:main", 0, 60),
        "mm": ("lib.py:1:fit", 40, 40),
        "g.py:4:work": ("lib.py:1:fit", 0, 20),
        "add": ("g.py:4:work", 10, 10),
        "lib.py:2:run": ("g.py:4:work", 0, 10),
        "sub": ("lib.py:2:run", 10, 10),
    }
    assert tree.frames.tolist() == [0, 1, 3, 1, 1, 0, 0, 0]


def test_the_same_op_in_two_places_is_two_nodes() -> None:
    trace = make_trace(
        [
            event("a", 0, 10, kind="scope"),
            event("mm", 2, 5),
            event("b", 20, 30, kind="scope"),
            event("mm", 22, 29),
        ]
    )
    tree = call_tree(trace)

    assert len(tree) == 5
    assert tree.of_event.tolist() == [1, 3, 2, 4]


def test_python_frames_between_ops_stand_aside() -> None:
    trace = make_trace([event("scope", 0, 50, kind="scope"), event("frame", 5, 45, kind="python"), event("op", 10, 20)])
    tree = call_tree(trace)

    assert nodes_by_name(trace, tree)["op"][0] == "scope"
    assert tree.of_event.tolist() == [1, 0, 2]


def test_kernels_and_nothing_at_all_are_only_a_root() -> None:
    kernels = make_trace([event("kernel", 0, 5, kind="kernel", device="CUDA")])

    assert len(call_tree(kernels)) == 1
    assert len(call_tree(make_trace([]))) == 1


def test_calls_that_are_nested_very_deep_count_with_the_one_around_them() -> None:
    trace = make_trace([event(f"scope {at % 2}", at, 4_000 - at, kind="scope") for at in range(1_700)])
    tree = call_tree(trace)
    own = tree.own(nesting(trace).self_ns)

    assert len(tree) == 1 + 1_000
    assert own[1:-1].tolist() == [2] * 999
    # The innermost of 1,700 takes 602 ns of its own, 700 others 2 ns each.
    assert own[-1] == 602 + 700 * 2
    assert tree.with_callees(own)[0] == 4_000
