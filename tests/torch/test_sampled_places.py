"""Samples tell where a thread was, also in code that no call and no loop interrupts."""

import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from timed_functions import until_asleep

import mtprof_nb as mtp
from mtprof_nb.capture.native.recorder_loading import recorder

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(recorder() is None, reason="the native recorder is not built")

#: Some microseconds of arithmetic, in which the interpreter looks at nothing else.
SUM = " + ".join(f"i * {number}" for number in range(3, 143))
#: The first function of each takes nearly all the time, in what follows its call next to none.
PROGRAMS = {
    "arithmetic": f"def costly(i):\n    a = {SUM}\n    return a\n",
    "numpy": "def costly(i):\n    a = x * x + x * 2.0 - x / 3.0\n    return a\n",
    "slices": "def costly(i):\n    a = values[10:2000][::-1] + values[1:]\n    return a\n",
    "attributes": f"def costly(i):\n    a = {' + '.join(['thing.x'] * 100)}\n    return a\n",
    "strings": "def costly(i):\n    a = (f'{i}-{i * 2}-{i!r}-{i:08d}' + text) * 200 + text * 300\n    return a\n",
    "dictionaries": f"def costly(i):\n    {'; '.join(f'known[{key}] = i' for key in range(100))}\n    return i\n",
    "comprehension": "def costly(i):\n    a = {value: value for value in values}\n    return a\n",
    "keeps the GIL": "def costly(i):\n    a = sorted(values, reverse=True)\n    return a\n",
    "releases the GIL": "def costly(i):\n    a = zlib.compress(random, 1)\n    return a\n",
}
CHEAP = """
def cheap(a):
    return None
def run(is_over):
    while not is_over():
        for i in range(50):
            cheap(costly(i))
"""


class Thing:
    x = 1


def made(program: str) -> Callable[[Callable[[], bool]], None]:
    import zlib

    names: dict[str, Any] = {"x": np.ones(50_000), "values": list(range(3000)), "thing": Thing(), "text": "ab" * 20}
    names |= {"known": {}, "zlib": zlib, "random": np.random.default_rng(0).bytes(20_000)}
    exec(compile(PROGRAMS[program] + CHEAP, "places.py", "exec"), names)
    found: Callable[[Callable[[], bool]], None] = names["run"]
    return found


class Enough:
    """Ends a program after so much time of its own thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = 0.0

    def __call__(self) -> bool:
        now = time.thread_time()
        self._end = self._end or now + self._seconds
        return now > self._end


def functions(thread: int) -> Counter[str]:
    """Samples of the thread by the function that was running."""
    raw = recorder().stop_sampler()
    code, node, native_id = (
        np.frombuffer(raw[name], kind)
        for name, kind in (("node_code", np.int32), ("node", np.int32), ("thread", np.int64))
    )
    found = Counter(raw["codes"][code[each]][1] for each in node[native_id == thread].tolist())
    # On a busy machine, threads are suspended most often where they ask the system for the time: in `Enough`.
    del found["__call__"]
    return found


@pytest.fixture(params=[1, 2], ids=["process_vm_readv", "mem"])
def way(request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param
    recorder().stop_sampler()


@pytest.mark.parametrize("program", PROGRAMS)
def test_time_is_of_the_function_that_takes_it(program: str) -> None:
    run = made(program)
    recorder().start_sampler(500_000, None)
    run(Enough(0.15))
    found = functions(threading.main_thread().native_id)

    costly = found["costly"] + found["<dictcomp>"]
    assert costly > 0.6 * found.total()
    assert found["cheap"] < 0.25 * found.total()


def test_other_threads_are_read_too_and_with_another_way(way: int) -> None:
    run = made("arithmetic")
    thread = threading.Thread(target=run, args=(Enough(0.1),))
    assert recorder().start_sampler(500_000, None, way)
    thread.start()
    own = thread.native_id
    thread.join()
    found = functions(own)

    assert found["costly"] > 0.6 * found.total()


def test_the_table_of_functions_has_the_function_that_takes_the_time() -> None:
    run = made("numpy")
    with mtp.profile(with_python=True) as prof:
        run(Enough(0.2))

    own_ns = Counter({row.function: row.own_ns for row in prof.functions()})
    assert own_ns["costly"] > 0.6 * own_ns.total()
    assert own_ns["cheap"] < 0.25 * own_ns.total()


def looks_at(threads: list[threading.Thread], seconds: float) -> np.ndarray:
    """Samples of the threads in some time, in rows: native id, and whether the thread was asleep."""
    recorder().start_sampler(500_000, None)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    raw = recorder().stop_sampler()
    native_id, is_waiting = np.frombuffer(raw["thread"], np.int64), np.frombuffer(raw["is_waiting"], np.int8)
    chosen = np.isin(native_id, [thread.native_id for thread in threads])
    return np.stack([native_id[chosen], is_waiting[chosen]], axis=1)


@pytest.mark.parametrize("is_short_of_files", [False, True])
def test_none_of_hundreds_of_sleeping_threads_counts_as_running(is_short_of_files: bool) -> None:
    go = threading.Event()
    threads = [threading.Thread(target=go.wait) for _ in range(300)]
    for thread in threads:
        thread.start()
    until_asleep(*threads)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        if is_short_of_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (16, limits[1]))
        # A look at all of them takes the longer, the busier the machine is.
        found = (looks_at(threads, 0.2 * 2**times) for times in range(8))
        looks = next(rows for rows in found if len(np.unique(rows[:, 0])) == 300)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        go.set()
        for thread in threads:
            thread.join()

    assert looks[:, 1].mean() >= 0.98


class Prepared(torch.utils.data.Dataset[Any]):
    """Each item takes numpy some time, and then goes through a function that does nothing."""

    data = np.random.default_rng(0).random((64, 100_000), np.float32)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        a = self.data[index]
        a = a * a + a * 2.0 - a / 3.0 + a * a * a - a * 0.1
        return clipped(torch.from_numpy(a))


def clipped(a: Any) -> Any:
    return a


def test_the_finding_about_a_loader_names_the_line_that_takes_the_time() -> None:
    loader, net = torch.utils.data.DataLoader(Prepared(), batch_size=8), torch.nn.Linear(100_000, 1)
    with mtp.profile(hook="native", with_python=True, with_stack=True) as prof:
        for _ in range(4):
            for batch in loader:
                net(batch).sum().backward()

    (line,) = [finding.line for finding in prof.advice() if "DataLoader" in finding.title]
    assert line is not None
    assert (line.file, line.line - Prepared.__getitem__.__code__.co_firstlineno) == (__file__, 2)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that lets no thread read the memory of its own process."""
    found = recorder()

    class Refusing:
        def __getattr__(self, name: str) -> Any:
            return getattr(found, name)

        def start_sampler(self, *_: object) -> bool:
            return False

    monkeypatch.setattr("mtprof_nb.capture.native.native_sampler.recorder", Refusing)


@pytest.mark.usefixtures("refused")
def test_where_the_system_forbids_it_a_note_says_that_samples_are_late_and_no_error_is_told() -> None:
    run = made("comprehension")
    with mtp.profile(with_python=True) as prof:
        run(Enough(0.1))

    (note,) = [note for note in prof.summary().notes if note.startswith("Samples of Python code")]
    assert "at the next call or loop after their moment" in note
    assert {row.error_ns for row in prof.functions() if row.samples} == {None}
    assert "?" in prof.functions().table()


def test_the_start_and_the_end_of_the_profiler_are_in_no_sample() -> None:
    with mtp.profile(with_python=True, with_stack=True) as prof:
        Enough(0.01)()

    trace = prof.trace
    assert trace.samples is not None
    assert (trace.samples.time_ns >= trace.began_ns + trace.own_ns).all()
    assert (trace.samples.time_ns < trace.ended_ns).all()


def test_the_sampler_tells_which_thread_ended_it_and_for_how_long_that_had_slept() -> None:
    recorder().start_sampler(500_000, None)
    computed_ns = time.thread_time_ns()
    raw = recorder().stop_sampler()

    assert raw["ended_by"] == threading.get_native_id()
    assert -1 <= raw["asleep_at_end"] <= time.perf_counter_ns() - computed_ns
