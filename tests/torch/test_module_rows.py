"""Rows of the grouping by module, of models that nest."""

import pytest
from recording import NATIVE

import mtprof_nb as mtp
from mtprof_nb.tables.operators.operator_rows import rows

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.second(self.first(x))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize("hook", [NATIVE])
def test_every_module_around_one_that_ran_an_op_has_a_row(hook: str) -> None:
    net = Net()
    with mtp.profile(with_modules=True, hook=hook) as prof:
        net(torch.ones(2, 8))

    found = rows(prof.trace, "module")
    totals = dict(zip(found.label, found.value["total_ns"].tolist(), strict=True))
    leaves = {f"Net.blocks.{block}.{part}" for block in (0, 1) for part in ("first", "second")}
    containers = {"Net", "Net.blocks", "Net.blocks.0", "Net.blocks.1"}

    assert leaves | containers <= set(totals)
    assert totals["Net"] == totals["Net.blocks"] == sum(totals[leaf] for leaf in leaves)
    assert totals["Net.blocks.0"] == totals["Net.blocks.0.first"] + totals["Net.blocks.0.second"]
