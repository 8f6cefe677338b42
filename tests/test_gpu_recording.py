"""The recording of the tutorial on GPU traces: what its script writes, and what it shows."""

import subprocess
import sys
from pathlib import Path

from mtprof_nb import load

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "notebooks" / "gpu_training.json.gz"


def test_the_recording_is_what_its_script_writes(tmp_path: Path) -> None:
    written = tmp_path / RECORDING.name
    subprocess.run([sys.executable, ROOT / "scripts" / "gpu_recording.py", written], check=True, capture_output=True)

    assert written.read_bytes() == RECORDING.read_bytes()
    assert RECORDING.stat().st_size < 50_000


def test_it_shows_what_the_tutorial_is_about() -> None:
    devices = load(RECORDING).devices()
    (row,) = devices

    assert devices.sentence == "the GPU is idle 54 % of the time, waiting for the host"
    assert all((row.idle_host_ns, row.idle_synchronisation_ns, row.exposed_communication_ns, row.exposed_copies_ns))
    assert row.short_kernels > row.kernels / 2
    ops = {kernel.op for kernel in devices.kernels()}
    assert {"Torch-Compiled Region: 0/0", "cudaGraphLaunch", "record_param_comms", "aten::addmm"} <= ops
