"""A simulated GPU that torch and the package believe in."""

from collections.abc import Iterator

import pytest
from recording import NATIVE
from simulated_device import SimulatedDevice, device

from mtprof_nb.errors import BuildError


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedDevice]:
    """The device, without plans; skipped where it or the recorder cannot be compiled."""
    torch = pytest.importorskip("torch")
    if NATIVE.marks[0].args[0]:
        pytest.skip(NATIVE.marks[0].kwargs["reason"])
    try:
        found = device()
    except BuildError as error:
        pytest.skip(str(error))
    both = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
    for owner, name in ((torch.profiler, "supported_activities"), (torch.autograd.profiler, "_supported_activities")):
        monkeypatch.setattr(owner, name, lambda: both)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    found.reset()
    yield found
    found.reset()
