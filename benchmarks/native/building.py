"""The time to build the native recorder."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import child
from benchmarks.figure import Figure, Spread, at_most
from benchmarks.native.running import GROUP
from benchmarks.sampling import Sample, Scale


def figures(scale: Scale) -> list[Figure]:
    """One build; none at a scale that has no time for it, nor where the processor time of a child is not known."""
    if not scale.builds or sys.platform == "win32":
        return []
    took: Sample = child.call("benchmarks.native.building:measure")
    value = Spread.of([took["processor"]])
    return [
        Figure(
            GROUP,
            "build of the recorder",
            "",
            value,
            1,
            unit="s",
            bound=at_most(60),
            behind=f"{took['wall']:.0f} s passed",
        )
    ]


def measure() -> Sample:
    """Processor time of the compiler, and the time that passed, for a build into a new cache folder."""
    import mtprof_nb

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        before, began = os.times(), time.monotonic()
        binary = mtprof_nb.build_recorder()
        after = os.times()
        assert binary.is_relative_to(Path(folder).resolve()) or binary.is_relative_to(folder)
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return {"processor": processor, "wall": time.monotonic() - began}
