"""Regions of torch.compile as a grouping of the operators table, on traces made by hand."""

from traces import event, make_trace

from mtprof_nb.building.compiled_lines import BrokenFunctions, Share, with_user_frames
from mtprof_nb.model.trace import Frame, Trace
from mtprof_nb.tables.operators.operator_rows import offered, rows

WRAPPER = "/tmp" + "/torchinductor_me/ab/cabc.py"
GRAPH = "## Call CompiledFxGraph fabc ##"


def region(start: int, name: str = "Torch-Compiled Region: 0/0") -> list[dict[str, object]]:
    """A region of 1000 ns: a kernel of 100, a product of 200 with what it calls, and the rest."""
    called = [(WRAPPER, 3, "call"), ("net.py", 4, "f")]
    return [
        event(name, start, start + 1000),
        event("CompiledFunction", start + 100, start + 900, sequence=7),
        event(GRAPH, start + 200, start + 800, kind="scope"),
        event("cpp_fused_0", start + 300, start + 400, stack=called),
        event("aten::mm", start + 500, start + 700, stack=[(WRAPPER, 4, "call"), called[1]]),
        event("aten::resolve_conj", start + 510, start + 520),
    ]


def explained(events: list[dict[str, object]]) -> Trace:
    shares = [
        Share((Frame("net.py", 5, "f"),), 600, "exp"),
        Share((Frame("net.py", 6, "f"),), 300, "mul 3 times"),
    ]
    product = [Share((Frame("net.py", 8, "f"),), 1, "mm")]
    broken = BrokenFunctions(lambda _: "", lambda _, line: line)
    known = {(WRAPPER, 3): shares, (WRAPPER, 4): product}
    return with_user_frames(make_trace(events), known, broken)


def table(trace: Trace) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Calls, self and total time of each row, by its label and detail."""
    found = rows(trace, "region")
    numbers = zip(*(found.value[key].tolist() for key in ("count", "self_ns", "total_ns")), strict=True)
    return dict(zip(zip(found.label, found.detail, strict=True), numbers, strict=True))


def test_a_region_opens_into_kernels_wrapper_and_rest() -> None:
    found = table(explained([*region(0), *region(2000), event("aten::add", 4000, 4005)]))

    assert found == {
        ("Region: 0/0", ""): (2, 800, 2000),
        ("Region: 0/0 › wrapper", ""): (2, 600, 1200),
        ("Region: 0/0 › cpp_fused_0", "net.py:5 (exp), net.py:6 (mul 3 times)"): (2, 200, 200),
        ("Region: 0/0 › aten::mm", "net.py:8"): (2, 400, 400),
        ("(no region)", ""): (1, 5, 5),
    }


def test_a_region_inside_another_has_rows_of_its_own() -> None:
    inner = event("Torch-Compiled Region: 1/0", 910, 950)
    found = table(explained([*region(0), inner, event("aten::add", 920, 930)]))

    assert found["Region: 0/0", ""] == (1, 360, 1000)
    assert found["Region: 1/0", ""] == (1, 30, 40)
    assert found["Region: 1/0 › aten::add", ""] == (1, 10, 10)


def test_a_region_of_the_backward_pass_belongs_to_the_forward_one() -> None:
    backward = event("CompiledFunctionBackward", 3000, 3100, phase="backward", forward=1)
    kernel = event("cpp_fused_1", 3010, 3050, phase="backward")
    found = table(explained([*region(0), backward, kernel]))

    assert found["Region: 0/0 backward", ""] == (1, 60, 100)
    assert found["Region: 0/0 backward › cpp_fused_1", ""] == (1, 40, 40)


def test_regions_are_a_grouping_only_where_compiled_code_ran() -> None:
    assert "region" in offered(explained(region(0)))
    assert "region" not in offered(make_trace([event("aten::mm", 0, 1)]))
