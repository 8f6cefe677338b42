"""The script that a user with a GPU runs once."""

import os
import re
import subprocess
import sys
from pathlib import Path

from simulated_device import SimulatedDevice

ROOT = Path(__file__).parents[2]


def test_the_script_finds_no_difference_on_the_simulated_device(gpu: SimulatedDevice) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/compare_devices.py"), "--simulated", "--steps", "4"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"pairs of kernel and op that differ: 0 of \d+", done.stdout)
    assert "<--" not in done.stdout
    assert "optimizer.step()" in done.stdout
