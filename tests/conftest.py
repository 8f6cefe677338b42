"""Fixtures of every test: nothing stays behind, the size of long tests, and the browser."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator

import leftovers
import pytest
from hypothesis import settings

# How long an example takes is the machine's affair, and no failure.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# A progress bar of a library that a test uses would start a thread, which then runs beside every later recording.
with contextlib.suppress(ImportError):
    import tqdm

    tqdm.tqdm.monitor_interval = 0

# A shell starts what it puts into the background with interrupts ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """No session active, no hook installed, nothing patched after a test; what stayed is removed for the next."""
    before = leftovers.snapshot()
    yield
    left = leftovers.close(before)
    if left:
        pytest.fail("left behind: " + "; ".join(left), pytrace=False)


@pytest.fixture
def kineto_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hook `auto` takes Kineto, as where the native recorder is not built."""
    monkeypatch.setenv("MTPROF_RECORDER", "off")


@pytest.fixture
def rounds() -> Callable[[int, int], int]:
    """`rounds(short, full)`: how often a test marked `soak` repeats, by default and under `make soak`."""
    return lambda short, full: full if os.environ.get("MTPROF_SOAK") else short


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser; without one the test is skipped, and on a build machine it fails."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    reason = "no chromium on PATH: install one (Debian: apt-get install chromium)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
