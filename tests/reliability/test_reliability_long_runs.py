"""Runs that last: memory stays flat, nothing leaks, and tensors die when the user lets go of them."""

import gc
import resource
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import HOOKS
from reliability_cases import IDS, RECORDINGS, names

import mtprof_nb as mtp

torch = pytest.importorskip("torch")
PAGE = resource.getpagesize()


def resident_bytes() -> int:
    """Memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.soak
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@HOOKS
def test_ops_far_beyond_max_events_keep_memory_flat(hook: str, rounds: Callable[[int, int], int]) -> None:
    x = torch.ones(2)
    total, most = rounds(300_000, 10_000_000), 20_000

    def run(count: int) -> None:
        add = torch.add
        for _ in range(count):
            add(x, x)

    with warnings.catch_warnings(record=True) as caught, mtp.profile(hook=hook, max_events=most) as prof:
        warnings.simplefilter("always")
        run(150_000)  # beyond the cap, and its first reading-out
        before = resident_bytes()
        run(total - 150_000)
        grown = resident_bytes() - before
    print(f"{hook}: {total:,} ops, {grown / 2**20:+.1f} MiB after the cap")
    assert grown < 16 * 2**20
    assert len(prof.trace) == most
    assert prof.trace.dropped > 0
    assert sum("max_events=20,000 was reached" in str(one.message) for one in caught) == 1


def counted_objects() -> Counter[str]:
    gc.collect()
    counts: Counter[str] = Counter()
    # One by one: a counter asks of what it is given whether it is a mapping, and every such class remembers the answer.
    for one in gc.get_objects():
        counts[type(one).__name__] += 1
    return counts


@pytest.mark.soak
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_starts_and_stops_leak_neither_objects_nor_memory(
    recording: dict[str, Any], rounds: Callable[[int, int], int]
) -> None:
    x = torch.ones(4, 4)

    def record() -> None:
        with mtp.profile(**recording) as prof:
            torch.mm(x, x)
        prof.key_averages().table()

    for _ in range(10):
        record()
    objects, memory = counted_objects(), resident_bytes()
    count = rounds(60, 1000)
    for _ in range(count):
        record()
    more = {name: found - objects[name] for name, found in counted_objects().items() if found - objects[name] > 0}
    grown = resident_bytes() - memory
    print(f"{count} starts and stops: {grown / count / 1024:+.1f} KiB each, {sum(more.values())} objects more")
    assert sum(more.values()) < count / 2, more
    assert grown / count < 60 * 1024


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_tensors_and_modules_are_freed_when_the_user_frees_them(recording: dict[str, Any]) -> None:
    gc.disable()
    try:
        with mtp.profile(**recording) as prof:
            leaf, model = torch.rand(8, 8, requires_grad=True), torch.nn.Linear(8, 8)
            product = model(torch.mm(leaf, leaf))
            product.sum().backward()
            kept = [weakref.ref(one) for one in (leaf, product, model, model.weight, leaf.grad)]
            del leaf, product, model
            freed_inside = [one() is None for one in kept]
    finally:
        gc.enable()
    assert freed_inside == [True] * len(kept)
    assert "aten::mm" in names(prof)


@pytest.mark.parametrize("recording", RECORDINGS, ids=IDS)
def test_a_profile_that_is_dropped_frees_its_trace(recording: dict[str, Any]) -> None:
    with mtp.profile(**recording) as prof:
        torch.ones(2)
    prof.key_averages().table()
    kept = [weakref.ref(prof), weakref.ref(prof.trace)]
    del prof
    with mtp.profile(hook="kineto"):  # `last()` holds one profile, and no more
        pass
    gc.collect()
    assert [one() for one in kept] == [None, None]
