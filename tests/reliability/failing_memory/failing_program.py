"""Lets the n-th allocation of the recorder fail, for every n: `python failing_program.py LIBRARY PART ...`.

Run it with LIBRARY, made of `failing_memory.cpp`, in LD_PRELOAD.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mtprof_nb.capture.native.recorder_loading import recorder

_ENDLESS = 1 << 60
_MODULE: Any = recorder()
_FLAGS = dict.fromkeys(("with_inputs", "with_stacks", "with_memory", "with_ids"), True)
_CALL = torch.nn.Module.__call__.__code__
#: From so many values on, those of one form are kept for each op alone.
_VALUES = 70


class Memory:
    """The memory of the recorder: `arm(n, n)` lets its n-th allocation from now on fail, `arm(n)` all from there."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.disarm.restype = ctypes.c_long
        assert self._library.watch(_MODULE.__file__.encode()), "the recorder is not loaded"

    def arm(self, first: int, last: int = _ENDLESS) -> None:
        self._library.arm(ctypes.c_long(first), ctypes.c_long(last))

    def disarm(self) -> int:
        """How many allocations the recorder made."""
        return int(self._library.disarm())


def start() -> None:
    _MODULE.start(**_FLAGS, max_events=1_000_000, module_call=_CALL, outermost=program.__code__)


def program() -> float:
    """Ops with all that a recording keeps of them; returns a number that they make."""
    w = torch.arange(6.0).reshape(2, 3).requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.5)
    rows = torch.arange(float(_VALUES))
    net = torch.nn.Linear(3, 1)
    torch.nn.init.ones_(net.weight)
    with torch.profiler.record_function("scope"):
        total = sum(float(rows[index]) for index in range(_VALUES))
        net(w * 2).sum().backward()
        optimizer.step()
    thread = threading.Thread(target=lambda: torch.ones(3).mul(2).add_(1, alpha=3))
    thread.start()
    thread.join()
    with torch._C._profiler._RecordFunctionFast("fast", [torch.ones(2), 3], {"key": "text"}):
        pass
    torch.UntypedStorage(8).clone()  # memory outside any op, with a stack of its own
    return total + float(w.detach().sum())


def facts(columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    """All that is known of each event, without its times."""

    def of(column: str, table: str | None = None, dtype: type = np.int32) -> list[Any]:
        numbers = np.frombuffer(columns[column], dtype).tolist()
        return numbers if table is None else [columns[table][one] if one >= 0 else None for one in numbers]

    parents, codes, lines = of("node_parent"), of("node_code", "codes"), of("node_line")

    def frames(node: int) -> list[Any]:
        found = []
        while node >= 0:
            found.append((codes[node], lines[node]))
            node = parents[node]
        return found

    stacks = [frames(node) for node in of("stack")]
    threads = of("thread")
    rest = (of("name", "names"), of("form", "forms"), of("values", "value_texts"), of("scope", dtype=np.int8), stacks)
    assert len(of("handle", dtype=np.int64)) == len(threads)
    return list(zip(threads, *rest, strict=True))


def recorded() -> dict[str, Any]:
    start()
    program()
    return dict(_MODULE.stop())


def assert_is_whole(expected: list[tuple[Any, ...]]) -> None:
    """A recording now has everything."""
    columns = recorded()
    assert (columns["dropped"], columns["is_out_of_memory"]) == (0, False)
    assert facts(columns) == expected


def assert_begins_as(columns: dict[str, Any], expected: list[tuple[Any, ...]], n: int) -> None:
    """The recording has the first events, each one right, and counts all that follow."""
    found = facts(columns)
    assert found == expected[: len(found)], n
    assert columns["dropped"] == len(expected) - len(found), n
    assert (np.frombuffer(columns["block_event"], np.int32) < len(found)).all(), n
    assert columns["is_out_of_memory"] == (columns["dropped"] > 0) or len(found) == len(expected), n


def swept(run: Callable[[int, int], int], step: int = 1) -> int:
    """Call `run` with the numbers of the first and the last allocation to fail, until there are no more."""
    most = 0
    for is_for_good in (False, True):
        n = 1
        while (count := run(n, _ENDLESS if is_for_good else n)) >= n:
            n += step * 7 if is_for_good else step  # nearly the same, and takes as long
        most = max(most, count)
    return most


class Parts:
    """Each method lets allocations in one part of a recording fail, and checks what comes of it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._result = program()
        recorded()
        self._expected = facts(recorded())

    def ops(self) -> int:
        def run(first: int, last: int) -> int:
            start()
            self._memory.arm(first, last)
            result = program()
            count = self._memory.disarm()
            assert result == self._result
            assert_begins_as(_MODULE.stop(), self._expected, first)
            if first % 20 == 0:
                assert_is_whole(self._expected)
            return count

        return swept(run)

    def stop(self) -> int:
        def run(first: int, last: int) -> int:
            start()
            program()
            columns: list[dict[str, Any]] = []
            count = self._failing(lambda: columns.append(_MODULE.stop()), first, last, "the recording, which is lost")
            if columns:
                assert_begins_as(columns[0], self._expected, first)
            assert columns or last > first, f"lost for want of one piece of memory, {first}"
            return count

        return self._checked(swept(run))

    def start(self) -> int:
        def begin() -> None:
            _MODULE.start(**_FLAGS, max_events=1000)

        def run(first: int, last: int) -> int:
            count = self._failing(begin, first, last)
            if _MODULE.is_recording():
                _MODULE.stop()
            return count

        return self._checked(swept(run))

    def so_far(self) -> int:
        def run(first: int, last: int) -> int:
            start()
            with torch.profiler.record_function("open"):
                torch.ones(3)[1].add(2)
                count = self._failing(_MODULE.so_far, first, last)
                ops = {name: calls for name, calls, _ in _MODULE.so_far()[0]}
            assert ops["aten::add"] == 1
            _MODULE.stop()
            return count

        return self._checked(swept(run))

    def living(self) -> int:
        def search() -> None:
            _MODULE.living(torch.nn.Module)

        # Nearly all of it is one long list, which Python makes.
        return swept(lambda first, last: self._failing(search, first, last), step=23)

    def op_cost(self) -> int:
        return self._checked(swept(lambda first, last: self._failing(_MODULE.op_cost, first, last), step=3))

    def sampler(self) -> int:
        """Samples are taken by another thread, so that the number of its allocations is another one each time."""

        def run(first: int, last: int) -> int:
            def sampled() -> None:
                _MODULE.start_sampler(100_000)
                try:
                    for _ in range(10):
                        sum(range(200))  # each number is an allocation, whose callers are looked at
                        time.sleep(0.0003)
                finally:
                    _MODULE.stop_sampler()

            self._failing(sampled, first, last)
            return 120  # so many times

        return self._checked(swept(run))

    def _failing(self, call: Callable[[], Any], first: int, last: int, says: str = "") -> int:
        """Call it; only a `MemoryError` may come of it, which says this."""
        self._memory.arm(first, last)
        try:
            call()
        except MemoryError as error:
            text = str(error)
            count = self._memory.disarm()
            # Where all memory is gone, there is none for a text either.
            assert says in text or last > first, (first, text)
            return count
        return self._memory.disarm()

    def _checked(self, count: int) -> int:
        assert_is_whole(self._expected)
        return count


if __name__ == "__main__":
    parts = Parts(Memory(sys.argv[1]))
    for part in sys.argv[2:]:
        print(part, getattr(parts, part)(), flush=True)
