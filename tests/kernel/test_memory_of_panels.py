"""Memory of a kernel that shows panels: recordings that are gone need none, and those that are shown little more."""

import sys

import pytest
from conftest import Kernel

CELL = "%%mtprofile\nfor _ in range({events}):\n    add(x, x)"
SETUP = """
import gc, weakref, mtprof_nb
x, add = torch.ones(2), torch.add
traces = []
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
from mtprof_nb.analysis import once
most, once.MOST_EVENTS = once.MOST_EVENTS, 0  # of the last two recordings results are kept
gc.collect()
gc.disable()
"""
RESTORE = "once.MOST_EVENTS = most\ngc.enable()"
NOTE = "traces.append(weakref.ref(mtprof_nb.last().trace))"


def test_running_a_cell_again_frees_its_first_recording_without_the_collector(kernel: Kernel) -> None:
    assert kernel.run(SETUP).status == "ok"
    for allow_stdin in (True, True, True, False, False):
        assert kernel.run(CELL.format(events=2_000), cell_id="same", allow_stdin=allow_stdin).status == "ok"
        kernel.run(NOTE)

    alive = kernel.value("[trace() is not None for trace in traces]")
    kernel.run(RESTORE)
    # The page of a program without widgets closes no panel: that of the third run is still there.
    assert alive == [False, False, True, False, True]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("cells", "most_bytes"), [(1, 60), (5, 200)], ids=["the same cell", "other cells"])
def test_a_kernel_holds_little_more_than_the_recordings_that_it_shows(
    kernel: Kernel, cells: int, most_bytes: int
) -> None:
    events, held = 150_000, []
    assert kernel.run(SETUP).status == "ok"
    for number in range(5):
        cell = CELL.format(events=events)
        assert kernel.run(cell, cell_id=f"{cells} {number % cells}", allow_stdin=True).status == "ok"
        held.append(kernel.value("resident()"))
    kernel.run(RESTORE)

    # The first two need memory for results as well, which go to the next two.
    assert (held[4] - held[2]) / (2 * events) < most_bytes
