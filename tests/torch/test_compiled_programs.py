"""A compiled training loop, recorded as it compiles and after: compiling counts nowhere else."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch

import mtprof_nb
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.compilations import Compilation
from mtprof_nb.model.trace import COMPILING, Trace


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.last = torch.nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        torch._dynamo.graph_break()
        return self.last(hidden)


class Recorded(NamedTuple):
    first: Trace
    second: Trace
    #: With a batch of another size.
    again: Trace
    #: Gradients of the second, and of the same without a profiler.
    gradients: list[torch.Tensor]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    """Three recordings of one program, compiled without inductor: that takes seconds less."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    net = Net()
    compiled = torch.compile(net, backend="aot_eager", dynamic=False)

    def step(size: int) -> torch.Tensor:
        net.zero_grad()
        compiled(torch.ones(size, 4)).sum().backward()
        gradient = net.first.weight.grad
        assert gradient is not None
        return gradient.clone()

    def trace(size: int) -> Trace:
        with mtprof_nb.profile(record_shapes=True, with_stack=True, with_flops=True) as prof:
            step(size)
        return prof.trace

    first = trace(8)
    between = step(8)
    second = trace(8)
    after = step(8)
    yield Recorded(first, second, trace(9), [between, after])
    torch._dynamo.reset()


def compilations(trace: Trace) -> list[Compilation]:
    rows = [] if trace.compilation is None else trace.compilation[trace.compilation >= 0].tolist()
    return [trace.compilations[row] for row in rows]


def counts(trace: Trace) -> dict[str, int]:
    names = [trace.names[number] for number in trace.name[trace.phase != COMPILING]]
    return {name: names.count(name) for name in names if name.startswith(("aten::mm", "aten::addmm"))}


def test_each_compilation_has_its_function_and_its_cause(recorded: Recorded) -> None:
    found = [(one.function.partition("_at_")[0], one.cause) for one in compilations(recorded.first)]

    resumed = "torch_dynamo_resume_in_forward"
    assert found[:2] == [("forward", "first call"), (resumed, "first call")]
    assert sorted(found[2:]) == [("forward", "first backward"), (resumed, "first backward")]
    assert {one.file for one in compilations(recorded.first)} == {__file__}


def test_a_graph_break_has_its_line_and_torchs_reason(recorded: Recorded) -> None:
    (broken,) = compilations(recorded.first)[0].breaks

    assert (broken.file, broken.line) == (__file__, Net.forward.__code__.co_firstlineno + 2)
    assert "graph_break" in broken.reason


def test_compiling_again_has_torchs_reason(recorded: Recorded) -> None:
    one = compilations(recorded.again)[0]

    assert one.cause == "again"
    assert "size mismatch at index 0. expected 8, actual 9" in one.reason


def test_a_program_that_was_compiled_before_compiles_nothing_when_it_is_recorded(
    recorded: Recorded,
) -> None:
    assert compilations(recorded.second) == []
    assert torch.equal(*recorded.gradients)


def test_ops_that_the_compiler_traces_are_not_counted(recorded: Recorded) -> None:
    assert counts(recorded.first) == counts(recorded.second) == {"aten::addmm": 2, "aten::mm": 3}


def test_stages_of_each_compilation_add_up_to_its_event(recorded: Recorded) -> None:
    trace = recorded.first
    assert trace.compilation is not None
    for row in (trace.compilation >= 0).nonzero()[0].tolist():
        one = trace.compilations[trace.compilation[row]]
        stages = one.dynamo_ns + one.aot_ns + one.inductor_ns + one.build_ns
        assert stages == trace.duration_ns[row]


def test_phases_and_the_time_outside_add_up_to_the_wall(recorded: Recorded) -> None:
    of = summary(recorded.first)

    assert of.outside_ns is not None
    assert sum(of.phases_ns.values()) + of.outside_ns + of.profiler_ns == of.wall_ns


def _findings(run: Callable[[], object]) -> set[str]:
    """The rules about compiling that find something in what `run` does."""
    torch._dynamo.reset()
    with mtprof_nb.profile(record_shapes=True, with_stack=True) as prof:
        run()
    torch._dynamo.reset()
    about = {"recompiled", "graph_break", "compiled_in_loop"}
    return about & {finding.rule for finding in prof.advice()}


def _squared(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.T).sum()


def _printing(x: torch.Tensor) -> torch.Tensor:
    y = x @ x.T
    print("half")
    return y.sum()


def _sizes(dynamic: bool) -> None:
    compiled = torch.compile(_squared, backend="eager", dynamic=dynamic)
    for size in (3, 4, 5, 6):
        compiled(torch.ones(size, 2))


def _in_loop(function: Callable[[torch.Tensor], torch.Tensor], times: int) -> None:
    for _ in range(times):
        torch._dynamo.reset()
        torch.compile(function, backend="eager")(torch.ones(2, 2))


@pytest.mark.parametrize(
    ("run", "found"),
    [
        (lambda: _sizes(dynamic=False), {"recompiled"}),
        (lambda: _sizes(dynamic=True), set()),
        (lambda: _in_loop(_squared, 4), {"compiled_in_loop"}),
        (lambda: _in_loop(_squared, 1), set()),
        (lambda: _in_loop(_printing, 1), {"graph_break"}),
        (lambda: _squared(torch.ones(2, 2)), set()),
    ],
    ids=["sizes", "dynamic sizes", "in a loop", "once", "a break", "not compiled"],
)
@pytest.mark.usefixtures("recorded")  # so that no import of the compiler is recorded
def test_rules_find_flaws_of_compiled_programs(run: Callable[[], object], found: set[str]) -> None:
    assert _findings(run) == found
