"""A cell on every engine of a real cluster: one panel, the slow rank and its line, failures, interrupts, a death."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import TIMEOUT_S, Kernel

pytest.importorskip("ipyparallel")

START = """
%load_ext mtprof_nb
import ipyparallel, os, tempfile
import mtprof_nb as mtp
cluster = ipyparallel.Cluster(n=4, log_level=40)
rc = cluster.start_and_connect_sync()
view = rc[:2]
view.block = True
view.activate()
mtp.init_ranks(view)
"""
PREPARE = """
%%px --no-stream
import time
import torch
import torch.distributed as dist
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(16, 64)
rank = dist.get_rank()
"""
TRAIN = """%%mtprofile --ranks -o trained
for step in range(6):
    if rank == {slow}:
        time.sleep(0.25)
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
print("trained on", rank)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with a cluster of four engines, of which the first two are in use."""
    kernel = Kernel(tmp_path_factory.mktemp("cluster"))
    try:
        for code in (START, PREPARE):
            ran = kernel.run(code)
            assert ran.status == "ok", ran.traceback
        yield kernel
    finally:
        kernel.run("cluster.stop_cluster_sync()")
        kernel.close()


def test_one_panel_of_two_ranks_names_the_slow_one_and_its_line(cluster: Kernel) -> None:
    ran = cluster.run(TRAIN.format(slow=1))
    assert ran.status == "ok", ran.traceback
    (panel,) = ran.panels
    assert "Rank 1 came last in" in panel["text/plain"], panel["text/plain"]
    assert all(f"trained on {rank}" in str(ran.messages) for rank in (0, 1)), ran.messages
    rank, line, processes = cluster.value(
        "(trained.ranks().straggler.rank, trained.ranks().straggler.slower.line.line, len(trained.trace.processes))"
    )
    assert (rank, line, processes) == (1, 4, 2)
    # Both engines ran one cell, whose lines carry the notebook's label.
    assert cluster.value("len(trained.trace.sources)") == 1
    assert cluster.value("trained.ranks().straggler.slower.where").startswith(f"Cell [{ran.reply['execution_count']}]")
    assert cluster.value("mtp.last() is trained")
    saved = (
        "(trained.save('r.mtp'), mtp.load('r.mtp').ranks().to_dataframe().equals(trained.ranks().to_dataframe()))[1]"
    )
    assert cluster.value(saved)


def test_an_engine_that_raises_fails_the_cell_and_is_named(cluster: Kernel) -> None:
    ran = cluster.run("%%mtprofile --ranks -o failed\ny = x @ x.T\nif rank == 1:\n    raise ValueError('on purpose')")
    assert ran.status == "error"
    assert "on purpose" in ran.traceback + ran.stderr + str(ran.messages)
    (panel,) = ran.panels
    assert "Engine 1 failed with ValueError: recorded until then." in panel["text/plain"]
    assert cluster.value("[process.rank for process in failed.trace.processes]") == [0, 1]


def test_an_interrupt_reaches_the_engines_and_what_they_recorded_is_shown(cluster: Kernel) -> None:
    code = (
        "%%mtprofile --ranks -o stopped\ny = x @ x.T\n"
        "for _ in range(600):\n    print('running on', rank, flush=True)\n    time.sleep(0.1)"
    )
    sent = cluster.send(code)
    said = ""
    while not all(f"running on {rank}" in said for rank in (0, 1)):
        # ipyparallel displays what engines print.
        said += str(cluster.client.get_iopub_msg(timeout=TIMEOUT_S)["content"].get("data"))
    cluster.manager.interrupt_kernel()
    ran = cluster.finish(sent)
    (panel,) = ran.panels
    assert "was interrupted: recorded until then." in panel["text/plain"]
    assert cluster.value("len(stopped.trace.processes)") == 2


def test_targets_are_those_of_px(cluster: Kernel) -> None:
    ran = cluster.run("%%mtprofile --ranks --targets [1] -o second\ny = x @ x.T")
    assert ran.status == "ok", ran.traceback
    assert cluster.value("[process.rank for process in second.trace.processes]") == [1]
    assert cluster.value("list(view.targets)") == [0, 1]
    wrong = cluster.run("%%mtprofile --ranks --targets nonsense\n1")
    assert "names no engines" in wrong.stderr + wrong.traceback


def test_a_function_and_a_block_are_recorded_on_all_engines(cluster: Kernel) -> None:
    code = """
def product(size):
    import torch
    return (torch.ones(size, size) @ torch.ones(size, size)).shape[0]
called = mtp.ranks(view, product, 30)
with mtp.ranks(view, name="block") as block:
    view.execute("z = x @ x.T")
"""
    ran = cluster.run(code)
    assert ran.status == "ok", ran.traceback
    assert cluster.value("called.values") == {0: 30, 1: 30}
    counts = "[[row.count for row in one.key_averages(rank=rank) if row.key == 'aten::mm'] for rank in (0, 1)]"
    assert cluster.value(f"[{counts} for one in (called, block)]") == [[[1], [1]], [[1], [1]]]
    assert cluster.value("block.name") == "block"


def test_a_function_that_fails_on_one_engine_is_recorded_until_then(cluster: Kernel) -> None:
    code = """
def half():
    import torch
    import torch.distributed as dist
    total = torch.ones(3).sum().item()
    if dist.get_rank() == 1:
        raise ValueError("on purpose")
    return total
halved = mtp.ranks(view, half)
"""
    ran = cluster.run(code)
    assert ran.status == "ok", ran.traceback
    assert cluster.value("halved.values") == {0: 3.0}
    assert cluster.value("halved.trace.notes") == ("Engine 1 failed: ValueError: on purpose.",)
    assert cluster.value("[process.rank for process in halved.trace.processes]") == [0, 1]


def test_four_ranks_and_the_death_of_one(cluster: Kernel) -> None:
    ran = cluster.run("view = rc[:]\nview.block = True\nview.activate()\nmtp.init_ranks(view)")
    assert ran.status == "ok", ran.traceback
    assert cluster.run(PREPARE).status == "ok"
    ran = cluster.run(TRAIN.format(slow=2))
    assert ran.status == "ok", ran.traceback
    assert "Rank 2 came last in" in ran.panels[0]["text/plain"], ran.panels[0]["text/plain"]
    ran = cluster.run("%%mtprofile --ranks -o left\ny = x @ x.T\nif rank == 3:\n    import os\n    os._exit(1)")
    assert ran.status == "error"
    (panel,) = ran.panels
    assert "Engine 3 is missing: it died." in panel["text/plain"]
    assert cluster.value("left.trace.notes") == ("Engine 3 is missing: it died.",)
    assert cluster.value("[process.rank for process in left.trace.processes]") == [0, 1, 2]


def test_without_a_cluster_the_remedy_is_told(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile --ranks\n1")
    assert "--ranks needs a cluster" in ran.stderr + ran.traceback
    ran = kernel.run("%mtprofile --ranks 1")
    assert "--ranks runs a whole cell" in ran.stderr + ran.traceback
