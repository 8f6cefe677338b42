"""A recording of Kineto's ends, or goes on in parts, before its end would take more memory than there is."""

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from recording import EVERY_FLAG

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import event_cap

pytestmark = pytest.mark.usefixtures("kineto_alone")
GIB = 1 << 30


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets what the machine says to be available; the free part of the heap is not counted."""
    share = event_cap._SHARE
    monkeypatch.setattr(event_cap.Room, "_exceeds", lambda room, needed, _free: needed > room._available * share)

    def say(nbytes: int) -> None:
        monkeypatch.setattr(event_cap, "available_bytes", lambda: nbytes)

    return say


def add(times: int, until: Callable[[], bool] = lambda: False) -> int:
    x, one = torch.ones(4), torch.ones(4)
    for number in range(times):
        torch.add(x, one)
        if until():
            return number
    return times


@contextmanager
def caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def messages(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught]


def test_with_stacks_the_recording_ends_and_the_program_goes_on(available: Callable[[int], None]) -> None:
    available(GIB)
    with caught_warnings() as caught, mtp.profile(hook="kineto", **EVERY_FLAG) as prof:
        hook = prof._session.window.hooks["kineto"]  # type: ignore[union-attr]
        done = add(2_000_000, until=lambda: hook.profiler is None)
        add(1000)

    count = sum(event.name == "aten::add" for event in prof.events())
    assert 0 < count <= done + 1
    (span,) = prof.trace.unrecorded
    covered_s, ran_s = ((ended_ns - prof.trace.began_ns) / 1e9 for ended_ns in (span.began_ns, span.ended_ns))
    reason = "Kineto needs more memory to end a longer recording than is available; use fewer flags, or a schedule"
    # Ops that were running when it ended may be missing.
    missing = f", and at least {prof.trace.dropped:,} events are missing" * bool(prof.trace.dropped)
    assert messages(caught) == [f"recording stopped after {covered_s:.3g} of {ran_s:.3g} s{missing}: {reason}"]
    assert span.reason == reason
    assert not prof.trace.dropped_exactly


def test_without_stacks_it_goes_on_in_parts_and_every_op_is_there(available: Callable[[int], None]) -> None:
    available(GIB // 5)
    with (
        caught_warnings() as caught,
        mtp.profile(hook="kineto", record_shapes=True, profile_memory=True) as prof,
    ):
        hook = prof._session.window.hooks["kineto"]  # type: ignore[union-attr]
        done = add(2_000_000, until=lambda: len(hook._caps) > 2)
        add(100)

    assert sum(event.name == "aten::add" for event in prof.events()) == done + 101
    parts = f"recorded {len(prof.trace):,} events in 3 parts, because Kineto needs more memory to end it at once "
    assert [message.startswith(parts) for message in messages(caught)] == [True]
    assert prof.trace.allocations is not None
    # Two tensors of 16 bytes and one sum, in whichever part each came and went.
    assert prof.trace.allocations.total.max() == 48
    assert prof.trace.dropped_exactly


def test_memory_of_the_programs_own_does_not_end_a_recording_with_stacks(available: Callable[[int], None]) -> None:
    available(2 * GIB)
    kept = []
    x = torch.ones(4)
    with caught_warnings() as caught, mtp.profile(hook="kineto", with_stack=True) as prof:
        hook = prof._session.window.hooks["kineto"]  # type: ignore[union-attr]
        count = 0
        while len(hook._caps) < 2 and count < 100_000:
            if len(kept) < 2_000:
                kept += [bytearray(100_000) for _ in range(100)]
            torch.sin(x)
            count += 1
        torch.sin(x)

    found = [event for event in prof.events() if event.name == "aten::sin"]
    assert len(found) == count + 1
    lines = {event.stack[0].partition(":")[0].rpartition("/")[2] for event in found}
    assert lines == {"test_kineto_memory_limit.py"}
    assert [message.startswith(f"recorded {len(prof.trace):,} events in 2 parts") for message in messages(caught)] == [
        True
    ]


def test_where_hardly_anything_is_left_the_recording_ends(available: Callable[[int], None]) -> None:
    available(GIB // 20)
    with caught_warnings() as caught, mtp.profile(hook="kineto", record_shapes=True) as prof:
        hook = prof._session.window.hooks["kineto"]  # type: ignore[union-attr]
        add(2_000_000, until=lambda: hook.profiler is None)

    assert len(prof.trace) > 0
    assert [message.startswith("recording stopped after") for message in messages(caught)] == [True]


LIMITED = """
    import resource, sys, warnings
    import torch
    import mtprof_nb as mtp
    from mtprof_nb.views.static import static_page as static
    from mtprof_nb.views.scene import Scene

    def taken():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()

    x = torch.ones(4)
    flags = dict(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True, with_modules=True)
    with mtp.profile(hook="kineto", **flags):
        x.add(1)
    resource.setrlimit(resource.RLIMIT_AS, (taken() + 1_500_000_000, resource.getrlimit(resource.RLIMIT_AS)[1]))
    total = 0
    with warnings.catch_warnings(record=True) as caught, mtp.profile(hook="kineto", **flags) as prof:
        for number in range(100_000):
            total += int(x.add(1).numel())
    assert total == 400_000
    assert len(caught) == 1 and "Kineto needs more memory" in str(caught[0].message), caught
    prof.export_chrome_trace(sys.argv[1])
    assert "aten::add" in static.text(Scene(prof.trace))
    print("ended with a panel after", len(prof.trace))
"""


def test_under_a_limit_of_the_process_every_flag_ends_in_a_panel(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), f"{tmp_path}/trace.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "ended with a panel after" in done.stdout


def test_a_step_of_an_optimizer_is_not_cut(available: Callable[[int], None]) -> None:
    available(2 * GIB)
    kept: list[bytearray] = []
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())

    class Greedy(torch.optim.SGD):
        def step(self, closure: None = None) -> None:  # type: ignore[override]
            optimizer.step(closure)
            kept.extend(bytearray(100_000) for _ in range(20 if len(kept) < 2_000 else 0))

    greedy = Greedy(model.parameters(), lr=0.1)
    model(torch.ones(4)).sum().backward()
    with caught_warnings() as caught, mtp.profile(hook="kineto", with_stack=True, profile_memory=True) as prof:
        hook = prof._session.window.hooks["kineto"]  # type: ignore[union-attr]
        steps = 0
        while len(hook._caps) < 2 and hook.profiler is not None and steps < 20_000:
            greedy.step()
            steps += 1
        greedy.step()

    found = [event.name for event in prof.events()]
    assert found.count("Optimizer.step#Adam.step") == steps + 1
    assert [message.partition(" events in ")[2][:7] for message in messages(caught)] == ["2 parts"]
