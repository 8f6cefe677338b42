"""The examples in the docstrings of a recording, `load` and `compare` run, and give what they show."""

import builtins
import doctest
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_traces import job
from recording import EVERY_FLAG
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.recording import Recording, Results

FOR_TORCH = {"wait_for_exports", "take_pending_cuspy_export"}
METHODS = {
    name: method
    for name, method in vars(Results).items()
    if callable(method) and not name.startswith("_") and name not in FOR_TORCH
}
EXAMPLES = [
    example
    for name, documented in {**METHODS, "load": mtp.load, "compare": mtp.compare}.items()
    for example in doctest.DocTestFinder(recurse=False).find(documented, name, globs={})
]


def trained() -> mtp.profile:
    """A training run of three steps, with all that can be recorded."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters())
    batches = [torch.randn(4, 8)] * 3
    with mtp.profile(name="train", **EVERY_FLAG) as prof:
        for batch in mtp.steps(batches):
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return prof


def on_a_device() -> Recording:
    """Two kernels of 1 and 2 µs with a gap of 1 µs between them."""
    gpu: dict[str, Any] = {"kind": "kernel", "device": "CUDA", "stream": 7}
    return Recording(make_trace([event("gemm", 0, 1_000, **gpu), event("gemm", 2_000, 4_000, **gpu)]))


@pytest.fixture(scope="module")
def recordings() -> dict[str, Any]:
    """The names that examples use."""
    return {"mtp": mtp, "prof": trained(), "job": Recording(job()), "gpu": on_a_device()}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_gives_what_it_shows(
    example: doctest.DocTest, recordings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Values of examples become `_` of the interpreter, and IPython then sets no `_` of its own.
    monkeypatch.setattr(builtins, "_", None, raising=False)
    example.globs.update(recordings)
    said: list[str] = []

    failed, _ = doctest.DocTestRunner().run(example, out=said.append)

    assert failed == 0, "".join(said)
    assert any(tmp_path.iterdir()) or not example.name.startswith(("save", "export"))


def test_every_method_of_a_recording_has_an_example() -> None:
    assert {example.name for example in EXAMPLES if example.examples} == {*METHODS, "load", "compare"}
