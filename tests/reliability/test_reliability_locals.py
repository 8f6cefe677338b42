"""The locals of a profiled function are freed as it returns: no cycle of ours waits for the garbage collector."""

import contextlib
import gc
import io
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from marked_cells import new_shell
from recording import EVERY_FLAG
from reliability_cases import IDS, RECORDINGS

import mtprof_nb as mtp

torch = pytest.importorskip("torch")
SINGLE_FLAGS = [{"hook": "kineto", flag: True} for flag in EVERY_FLAG]
EVERY_IDS = [*IDS, *("-".join((options["hook"], list(options)[1])) for options in SINGLE_FLAGS)]


class Held:
    """Anything that takes memory."""


@pytest.fixture(autouse=True)
def without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def block(options: dict[str, Any]) -> weakref.ref[Held]:
    held = Held()
    with mtp.profile(**options):
        torch.ones(3).add(1)
    return weakref.ref(held)


def started_and_stopped(options: dict[str, Any]) -> weakref.ref[Held]:
    held = Held()
    prof = mtp.profile(**options)
    prof.start()
    torch.ones(3).add(1)
    prof.stop()
    return weakref.ref(held)


def steps(options: dict[str, Any]) -> weakref.ref[Held]:
    held = Held()
    with mtp.profile(schedule=mtp.schedule(wait=1, warmup=1, active=1), **options) as prof:
        for _ in range(4):
            torch.ones(3).add(1)
            prof.step()
    return weakref.ref(held)


def scopes(options: dict[str, Any]) -> weakref.ref[Held]:
    held = Held()

    @mtp.record_function("decorated")
    def decorated() -> Held:
        return held

    with mtp.profile(**options), mtp.record_function("scope"):
        decorated()
    return weakref.ref(held)


def decorator(options: dict[str, Any]) -> weakref.ref[Held]:
    @mtp.profile(**options)
    def decorated() -> weakref.ref[Held]:
        held = Held()
        torch.ones(3).add(1)
        return weakref.ref(held)

    return decorated()


def thread(options: dict[str, Any]) -> weakref.ref[Held]:
    held = Held()
    with mtp.profile(**options):
        worker = threading.Thread(target=lambda held: torch.ones(3).add(1), args=(held,))
        worker.start()
        worker.join()
    return weakref.ref(held)


def failure(options: dict[str, Any]) -> weakref.ref[Held]:
    held = Held()
    with contextlib.suppress(ZeroDivisionError), mtp.profile(**options):
        1 / 0  # noqa: B018
    return weakref.ref(held)


@pytest.mark.filterwarnings("ignore::mtprof_nb.MtprofWarning")
@pytest.mark.parametrize("way", [block, started_and_stopped, steps, scopes, decorator, thread, failure])
@pytest.mark.parametrize("options", [*RECORDINGS, *SINGLE_FLAGS], ids=EVERY_IDS)
def test_a_local_of_a_function_that_profiled_is_freed_at_its_end(
    way: Callable[[dict[str, Any]], weakref.ref[Held]], options: dict[str, Any]
) -> None:
    assert way(options)() is None


@pytest.mark.parametrize("flags", ["", "--all", "--hook kineto", "--hook kineto --all"])
def test_what_a_profiled_cell_held_is_freed_with_its_name(flags: str) -> None:
    cell = f"""%%mtprofile -q {flags}
def work():
    local = Held()
    torch.ones(3).add(1)
    return weakref.ref(local)
local, kept = work(), Held()
named = weakref.ref(kept)"""
    with new_shell() as shell, contextlib.redirect_stderr(io.StringIO()):
        shell.ip.user_ns |= {"Held": Held, "torch": torch, "weakref": weakref}
        shell.ip.run_line_magic("load_ext", "mtprof_nb")
        shell.ip.run_cell(cell)
        assert shell.ip.user_ns["local"]() is None
        shell.ip.run_cell("del kept")
        assert shell.ip.user_ns["named"]() is None
        shell.ip.run_line_magic("unload_ext", "mtprof_nb")
