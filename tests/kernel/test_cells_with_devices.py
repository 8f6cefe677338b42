"""A cell whose ops launch on a simulated GPU, recorded with everything by default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from simulated_device import device

from mtprof_nb.capture.native.recorder_loading import why_not
from mtprof_nb.errors import BuildError

if TYPE_CHECKING:
    from conftest import Kernel

_SETUP = f"""
%load_ext mtprof_nb
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import torch
import mtprof_nb as mtp
from simulated_device import Work, device
both = {{torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}}
torch.profiler.supported_activities = lambda: both
gpu = device()
gpu.plan("aten::mm", Work("sim_mm", 4_000))
ones = torch.ones(3, 3)
"""


def test_a_cell_has_kernels_with_its_lines_and_shows_the_device(new_kernel: Kernel) -> None:
    pytest.importorskip("torch")
    if reason := why_not():
        pytest.skip(f"no native recorder: {reason}")
    try:
        device()
    except BuildError as error:
        pytest.skip(str(error))
    new_kernel.run(_SETUP)
    ran = new_kernel.run("%%mtprofile\nwith gpu.on():\n    for _ in range(5):\n        ones.mm(ones)")

    assert (ran.status, ran.stderr, len(ran.panels)) == ("ok", "", 1)
    assert new_kernel.value("mtp.last().trace.hooks") == ("native",)
    assert new_kernel.value("[(row.source.strip(), row.device_ns) for row in mtp.last().lines() if row.device_ns]") == [
        ("ones.mm(ones)", 20_000)
    ]
    assert new_kernel.value("mtp.last().trace.recorded.with_stack and mtp.last().trace.recorded.profile_memory") is True
