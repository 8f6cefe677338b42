"""Regions of torch.compile, really compiled: lines, kernels, and what recording leaves behind."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compiled_programs import inputs, line, program

import mtprof_nb as mtp
from mtprof_nb.capture.native.recorder_loading import recorder
from mtprof_nb.tables.operators.operator_rows import rows

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler"),
    pytest.mark.skipif(recorder() is None, reason="the native recorder is not built"),
]
FLAGS: dict[str, Any] = {
    "hook": "native",
    "with_stack": True,
    "record_shapes": True,
    "with_flops": True,
}


class Compiled:
    """`block` of the program, compiled, recorded, and run before and after."""

    def __init__(self, folder: Path) -> None:
        module = program(folder)
        self.inputs = inputs(torch)
        self.eager = module.block
        self.run = torch.compile(module.block)
        # The first call is recorded too: its kernels are loaded during the recording.
        with mtp.profile(**FLAGS) as self.first:
            self.step(self.run)
        self.before = self.step(self.run)
        compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        with mtp.profile(**FLAGS) as self.prof:
            self.recorded = self.step(self.run)
        self.after = self.step(self.run)
        self.compiled_again = torch._dynamo.utils.counters["stats"]["unique_graphs"] - compiled
        with mtp.profile(**FLAGS) as self.eager_prof:
            self.step(self.eager)

    def step(self, function: Any) -> list[Any]:
        for one in self.inputs:
            one.grad = None
        loss = function(*self.inputs)
        loss.backward()
        return [loss.detach(), *(one.grad.clone() for one in self.inputs)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiled]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        torch._dynamo.reset()
        yield Compiled(tmp_path_factory.mktemp("program"))
        torch._dynamo.reset()


def kernels(prof: Any) -> dict[str, list[int]]:
    """The events of fused kernels by name."""
    trace, found = prof.trace, dict[str, list[int]]()
    for row in range(len(trace)):
        if (name := trace.names[trace.name[row]]).startswith("cpp_"):
            found.setdefault(name, []).append(row)
    return found


def test_each_product_stands_on_its_line_in_both_passes(compiled: Compiled) -> None:
    lines = compiled.prof.lines()
    ops = [(row.line, op) for row in lines for op in lines.ops(row)]
    products = {(at, op.phase): op.count for at, op in ops if op.name == "aten::mm"}

    first, second = line("h = x @ w"), line("y = h @ v")
    assert products == {(first, 0): 1, (second, 0): 1, (first, 1): 2, (second, 1): 2}


def test_products_and_flops_are_those_of_the_eager_program(compiled: Compiled) -> None:
    def of_products(prof: Any) -> tuple[int, int]:
        (row,) = [one for one in prof.key_averages() if one.key == "aten::mm"]
        return row.count, row.flops

    assert of_products(compiled.prof) == of_products(compiled.eager_prof)


def test_fused_kernels_stand_on_the_lines_that_they_compute(compiled: Compiled) -> None:
    lines = compiled.prof.lines()
    rows = {row.line: row for row in lines if row.file.endswith("compiled_program.py")}

    gelu, added = rows[line("h = torch.nn")], rows[line("y = y + x")]
    assert gelu.forward_ns > 0
    assert gelu.backward_ns > 0
    assert str(line("return (y * torch.sig")) in added.fused_with


def test_kernels_products_and_the_rest_sum_up_to_the_region(compiled: Compiled) -> None:
    trace = compiled.prof.trace
    parts = rows(trace, "region")
    titles = [label.split(" › ") for label in parts.label]
    for region in ("Region: 0/0", "Region: 0/0 backward"):
        inside = [row for row, (title, *_) in enumerate(titles) if title == region]
        own = parts.label.index(region)

        assert parts.value["self_ns"][inside].sum() == parts.value["total_ns"][own]
        assert {f"{region} › wrapper", f"{region} › aten::mm"} < {parts.label[row] for row in inside}
    named = {title[1] for title in titles if title[1:]}
    assert kernels(compiled.prof).keys() < named


def test_kernels_that_are_compiled_during_the_recording_are_timed(compiled: Compiled) -> None:
    assert kernels(compiled.first).keys() == kernels(compiled.prof).keys() != set()


def test_recording_compiles_nothing_and_changes_no_result(compiled: Compiled) -> None:
    assert compiled.compiled_again == 0
    for one, other, third in zip(compiled.before, compiled.recorded, compiled.after, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, third)


def test_all_kernels_are_the_compilers_own_after_a_recording(compiled: Compiled) -> None:
    modules = torch._inductor.codecache.PyCodeCache.modules
    names = [item for one in modules for item in vars(one).items()]
    kinds = {type(value).__name__ for name, value in names if name.startswith("cpp_")}

    assert kinds == {"builtin_function_or_method"}


def test_lines_of_kernels_survive_a_file(compiled: Compiled, tmp_path: Path) -> None:
    compiled.prof.save(tmp_path / "one.mtp")
    loaded = mtp.load(tmp_path / "one.mtp")

    assert list(loaded.lines()) == list(compiled.prof.lines())
