"""Memory is of one recording alone, whatever earlier recordings left; a hand-kept sum of storages is the truth."""

import json
import queue
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from page_elements import Elements
from recording import HOOKS

import mtprof_nb as mtp
from mtprof_nb.analysis import units
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.model.trace import Trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.tabs.memory.memory_tab import MemoryTab

MIB = 1 << 20
KEPT: list[torch.Tensor] = []


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    yield
    KEPT.clear()


def mebibytes(count: int) -> torch.Tensor:
    return torch.empty(count * MIB, dtype=torch.uint8)


class Ledger:
    """Allocates and releases tensors, and keeps the sum of their storages by hand."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.held: list[int] = []

    def take(self, name: str, count: int) -> None:
        self.tensors[name] = mebibytes(count)
        self._note()

    def drop(self, name: str) -> None:
        del self.tensors[name]
        self._note()

    def _note(self) -> None:
        self.held.append(sum(tensor.untyped_storage().nbytes() for tensor in self.tensors.values()))


def sixty_at_most(ledger: Ledger) -> None:
    ledger.take("a", 20)
    ledger.take("b", 40)
    ledger.drop("a")
    ledger.take("c", 5)
    ledger.drop("b")
    ledger.drop("c")


def recorded(hook: str, program: Callable[[], Any], **flags: bool) -> mtp.profile:
    with mtp.profile(hook=hook, profile_memory=True, **flags) as prof:
        program()
    return prof


def totals(trace: Trace) -> list[int]:
    assert trace.allocations is not None
    return list(trace.allocations.total.tolist())


def assert_is_of_this_recording(prof: mtp.profile, ledger: Ledger) -> None:
    assert totals(prof.trace) == ledger.held
    assert peak_bytes(prof.trace) == max(ledger.held)
    for event in prof.events():
        before, after = (event[f"cpu_memory_allocated_{side}"] for side in ("before", "after"))
        assert {before, after} <= {0, *ledger.held}
        assert event["cpu_memory_allocated_delta"] == after - before


@HOOKS
def test_tensors_that_an_earlier_recording_left_do_not_count(hook: str) -> None:
    recorded(hook, lambda: KEPT.append(mebibytes(50)))
    ledger = Ledger()

    assert_is_of_this_recording(recorded(hook, lambda: sixty_at_most(ledger)), ledger)


@HOOKS
def test_tensors_that_were_released_between_two_recordings_do_not_count(hook: str) -> None:
    peaks = []
    for _ in range(4):
        recorded(hook, lambda: KEPT.append(mebibytes(50)))
        KEPT.clear()
        ledger = Ledger()
        prof = recorded(hook, lambda ledger=ledger: sixty_at_most(ledger))  # type: ignore[misc]
        assert_is_of_this_recording(prof, ledger)
        peaks.append(peak_bytes(prof.trace))

    assert peaks == [60 * MIB] * 4


@HOOKS
def test_an_older_tensor_that_goes_during_the_recording_changes_nothing(hook: str) -> None:
    recorded(hook, lambda: KEPT.append(mebibytes(50)))
    ledger = Ledger()

    def program() -> None:
        ledger.take("first", 30)
        KEPT.clear()
        ledger.drop("first")
        sixty_at_most(ledger)

    prof = recorded(hook, program)
    assert_is_of_this_recording(prof, ledger)
    assert min(totals(prof.trace)) == 0
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages()) == 0


@HOOKS
@pytest.mark.filterwarnings("ignore:.*began before the recording:mtprof_nb.MtprofWarning")
def test_tensors_that_another_thread_drops_are_held_no_longer_than_their_address(hook: str) -> None:
    handed_over: queue.Queue[torch.Tensor | None] = queue.Queue(1)

    def drop_all() -> None:
        while handed_over.get() is not None:
            pass

    def program() -> None:
        for _ in range(50):
            handed_over.put(mebibytes(4))

    worker = threading.Thread(target=drop_all)
    worker.start()
    try:
        prof = recorded(hook, program)
    finally:
        handed_over.put(None)
        worker.join()
    records = prof.trace.allocations
    assert records is not None
    allocated = records.nbytes > 0
    assert records.nbytes[allocated].tolist() == [4 * MIB] * 50
    distinct = len(set(records.address[allocated].tolist()))
    assert distinct < 50
    assert peak_bytes(prof.trace) == max(totals(prof.trace)) <= distinct * 4 * MIB
    assert min(totals(prof.trace)) >= 0
    (row,) = (row for row in prof.key_averages() if row.key == "aten::empty")
    assert row.self_cpu_memory_usage == 50 * 4 * MIB


@HOOKS
def test_a_program_that_allocates_nothing_has_a_peak_of_zero(hook: str) -> None:
    ones = torch.ones(4)
    prof = recorded(hook, lambda: ones.view(2, 2))
    assert peak_bytes(prof.trace) == 0


@HOOKS
@pytest.mark.parametrize("acc_events", [False, True])
def test_each_window_of_a_schedule_counts_from_zero(hook: str, acc_events: bool) -> None:
    ledger, windows = Ledger(), []

    def keep(prof: mtp.profile) -> None:
        windows.append(totals(prof.trace))

    with mtp.profile(
        hook=hook,
        profile_memory=True,
        schedule=mtp.schedule(wait=1, warmup=0, active=1, repeat=3),
        on_trace_ready=keep,
        acc_events=acc_events,
    ) as prof:
        for _ in range(6):
            KEPT.append(mebibytes(10))
            sixty_at_most(ledger)
            prof.step()

    one = [10 * MIB, *(10 * MIB + held for held in ledger.held[:6])]
    assert windows == ([one, one * 2, one * 3] if acc_events else [one] * 3)
    assert peak_bytes(prof.trace) == 70 * MIB


@HOOKS
@pytest.mark.parametrize("acc_events", [False, True])
def test_every_view_and_export_tells_the_same_peak(tmp_path: Path, hook: str, acc_events: bool) -> None:
    recorded(hook, lambda: KEPT.append(mebibytes(50)))
    ledger = Ledger()
    with mtp.profile(
        hook=hook,
        schedule=mtp.schedule(wait=0, warmup=0, active=1, repeat=2),
        acc_events=acc_events,
        profile_memory=True,
        record_shapes=True,
        with_stack=True,
    ) as prof:
        for _ in range(2):
            KEPT.append(mebibytes(7))
            sixty_at_most(ledger)
            prof.step()
    most = 67 * MIB
    prof.export_memory_timeline(tmp_path / "memory.json", "cpu")
    prof.export_memory_timeline(tmp_path / "memory.html", "cpu")
    prof.export_chrome_trace(tmp_path / "trace.json")
    _, sizes = json.loads((tmp_path / "memory.json").read_text())
    records = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    panel = MemoryTab(Scene(prof.trace)).first()["curves"]

    assert peak_bytes(prof.trace) == most
    assert max(sum(held) for held in sizes) == most
    assert min(min(held) for held in sizes) == 0
    (curve,) = Elements((tmp_path / "memory.html").read_text("utf-8")).parts()["first-memory"]["curves"]
    assert max(curve["nbytes"]) == most
    assert max(row["args"]["Total Allocated"] for row in records if row["name"] == "[memory]") == most
    assert [(max(curve["nbytes"]), curve["peak"]["nbytes"]) for curve in panel] == [(most, most)]
    assert [max(line.y) for line in prof.memory().data] == [most, most]
    shown = re.search(r"peak memory\s+([\d.]+ \w+)|([\d.]+ \w+) peak memory", static.text(Scene(prof.trace)))
    assert shown is not None
    assert units.nbytes(most) in shown.groups()
