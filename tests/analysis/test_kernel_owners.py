"""The op, region, graph or scope that each kernel belongs to, and what follows from it."""

from typing import Any

from traces import Row, event, make_trace

from mtprof_nb.analysis.costs import averaged_costs, op_costs
from mtprof_nb.analysis.devices.kernel_groups import op_of_kernel
from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.families import MATRIX, MOVEMENT, REDUCTION, families
from mtprof_nb.analysis.lines.line_costs import line_costs
from mtprof_nb.analysis.stacks.calltree import call_tree
from mtprof_nb.analysis.stacks.stack_metrics import stack_totals
from mtprof_nb.model.trace import Trace
from mtprof_nb.tables.averages import key_averages
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.operators.operator_rows import rows


def kernel(name: str, start: int, end: int, **facts: Any) -> Row:
    return event(name, start, end, kind="kernel", device="CUDA", thread=7, **facts)


def launch(name: str, start: int, **facts: Any) -> Row:
    return event(name, start, start + 2, kind="runtime", **facts)


def op_names(trace: Trace) -> dict[str, str]:
    """The op of each kernel."""
    return {trace.names[trace.name[at]]: op_of_kernel(trace, at) for at in range(len(trace)) if trace.on_device[at]}


def test_a_kernel_belongs_to_the_op_that_the_runtime_names() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 10),
            event("aten::add", 2, 8),
            launch("cudaLaunchKernel", 3, launcher=0),
            kernel("gemm", 20, 30, launch=2, launcher=0),
        ]
    )
    assert op_names(trace) == {"gemm": "aten::mm"}


def test_a_kernel_without_an_op_belongs_to_the_innermost_op_or_region_around_its_launch() -> None:
    trace = make_trace(
        [
            event("ProfilerStep#1", 0, 100, kind="scope"),
            event("Torch-Compiled Region: 0/0", 5, 50, kind="scope"),
            event("my scope", 10, 40, kind="scope"),
            launch("cuLaunchKernel", 20),
            kernel("triton_poi_fused_add_0", 120, 130, launch=3),
            event("CompiledFunction", 60, 90),
            launch("cuLaunchKernel", 70),
            kernel("triton_red_fused_sum_1", 130, 140, launch=6),
        ]
    )
    assert op_names(trace) == {
        "triton_poi_fused_add_0": "Torch-Compiled Region: 0/0",
        "triton_red_fused_sum_1": "CompiledFunction",
    }


def test_kernels_of_a_graph_belong_to_its_launch_or_to_the_region_that_launched_it() -> None:
    trace = make_trace(
        [
            event("train", 0, 50, kind="scope"),
            launch("cudaGraphLaunch", 10),
            kernel("a", 100, 110, launch=1),
            kernel("b", 110, 130, launch=1),
            event("Torch-Compiled Region: 0/0", 60, 90),
            launch("cudaGraphLaunch", 70, launcher=4),
            kernel("c", 130, 135, launch=5, launcher=4),
        ]
    )
    graph = "cudaGraphLaunch"
    assert op_names(trace) == {"a": graph, "b": graph, "c": f"Torch-Compiled Region: 0/0, {graph}"}


def test_a_kernel_outside_ops_belongs_to_its_scope_and_else_to_its_launch() -> None:
    trace = make_trace(
        [
            event("ProfilerStep#1", 0, 100, kind="scope"),
            event("my scope", 10, 40, kind="scope"),
            launch("cudaLaunchKernel", 20),
            kernel("in a scope", 120, 130, launch=2),
            launch("cudaLaunchKernelExC", 60),
            kernel("in none", 130, 140, launch=4),
            kernel("not launched in the recording", 140, 150),
        ]
    )
    assert op_names(trace) == {
        "in a scope": "my scope",
        "in none": "cudaLaunchKernelExC",
        "not launched in the recording": "",
    }
    assert kernel_owners(trace)[[0, 1, 2]].tolist() == [-1, -1, -1]


def graph_in_a_scope() -> Trace:
    line = ("cell.py", 3)
    return make_trace(
        [
            event("train", 0, 50, kind="scope", stack=[("cell.py", 3, "f")], line=line, phase="backward"),
            launch("cudaGraphLaunch", 10, stack=[("cell.py", 4, "g")], line=("cell.py", 4), phase="backward"),
            kernel("a", 100, 110, launch=1),
            kernel("b", 110, 130, launch=1),
            event("aten::mm", 30, 40, stack=[("cell.py", 3, "f")], line=line),
            launch("cudaLaunchKernel", 32, launcher=4),
            kernel("gemm", 130, 131, launch=5, launcher=4),
            kernel("of another program", 140, 147),
        ],
        sources={"cell.py": "a\nb\nc\nd"},
    )


def test_device_time_of_such_kernels_is_the_owners_but_in_torchs_rows() -> None:
    trace = graph_in_a_scope()
    ours, torchs = op_costs(trace), averaged_costs(trace)

    assert ours.device_ns is not None
    assert ours.self_device_ns is not None
    assert (ours.device_ns[0], ours.self_device_ns[0], ours.self_device_ns[1]) == (31, 0, 30)
    assert torchs.device_ns is not None
    assert (torchs.device_ns[0], torchs.device_ns[1]) == (1, 0)
    assert {row.key: row.device_time_total for row in key_averages(trace)}["train"] == 0.001


def test_the_table_of_operators_lists_the_launch_of_a_graph() -> None:
    shown = rows(graph_in_a_scope())
    device = dict(zip(shown.label, shown.value["self_device_ns"].tolist(), strict=True))

    assert device == {"cudaGraphLaunch": 30, "aten::mm": 1, "a": 10, "b": 20, "gemm": 1, "of another program": 7}


def test_lines_have_the_device_time_of_all_kernels_by_phase() -> None:
    trace = graph_in_a_scope()
    costs = line_costs(trace)

    assert costs.device_ns is not None
    assert costs.device_ns.sum() == 38
    by_line = {row.line: row for row in Lines(trace)}
    found = {
        line: (row.device_ns, row.device_forward_ns, row.device_backward_ns, row.device_optimizer_ns)
        for line, row in by_line.items()
    }
    # The last row has what belongs to no line.
    assert found == {3: (1, 1, 0, 0), 4: (30, 0, 30, 0), 0: (7, 7, 0, 0)}


def test_stacks_have_the_device_time_of_graphs() -> None:
    trace = graph_in_a_scope()
    tree, total = stack_totals(trace, "self_cuda_time_total")
    assert {tree.stack(node)[0].function: ns for node, ns in enumerate(total.tolist())} == {"f": 1, "g": 30}

    calls = call_tree(trace)
    self_device_ns = op_costs(trace).self_device_ns
    assert self_device_ns is not None
    own = calls.own(self_device_ns)
    names = [trace.names[trace.name[at]] if at >= 0 else "" for at in calls.event.tolist()]
    assert {name: ns for name, ns in zip(names, own.tolist(), strict=True) if ns} == {
        "cudaGraphLaunch": 30,
        "aten::mm": 1,
    }


def test_a_kernel_has_the_family_of_its_op_and_else_that_of_its_name() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 10),
            kernel("splitKreduce_kernel", 20, 30, launcher=0),
            event("my::op", 40, 50),
            kernel("void cutlass gemm", 60, 70, launcher=2),
            kernel("sum", 80, 90),
            event("Memcpy HtoD (Pageable -> Device)", 90, 95, kind="copy", device="CUDA"),
        ]
    )
    assert families(trace)[[1, 3, 4, 5]].tolist() == [MATRIX, MATRIX, REDUCTION, MOVEMENT]
