"""A clock that jumps while the program runs: no negative duration, and nothing in the wrong order."""

import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from reliability_cases import EVERY_FLAG, names

import mtprof_nb as mtp
from mtprof_nb.capture.hook import Clock, Request
from mtprof_nb.capture.kineto_trace import build_trace

torch = pytest.importorskip("torch")
HOUR_NS = 3_600 * 10**9


@pytest.mark.parametrize("jump_ns", [-HOUR_NS, HOUR_NS])
def test_the_clock_of_a_session_never_goes_back(monkeypatch: pytest.MonkeyPatch, jump_ns: int) -> None:
    clock = Clock()
    before = clock.now_ns()
    true_time = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: true_time() + jump_ns)
    readings = [before, *(clock.now_ns() for _ in range(1000))]
    assert all(first <= second for first, second in pairwise(readings))
    assert readings[-1] - before < HOUR_NS // 2


@pytest.mark.parametrize("flags", [{}, EVERY_FLAG], ids=["plain", "every-flag"])
@pytest.mark.parametrize("hook", ["kineto", "dispatch"])
@pytest.mark.parametrize("jump_ns", [-HOUR_NS, HOUR_NS])
def test_a_wall_clock_that_jumps_leaves_order_and_durations(
    monkeypatch: pytest.MonkeyPatch, jump_ns: int, hook: str, flags: dict[str, bool]
) -> None:
    x, true_time = torch.ones(2), time.time_ns
    with mtp.profile(hook=hook, **flags) as prof:
        torch.sin(x)
        mtp.step()
        monkeypatch.setattr(time, "time_ns", lambda: true_time() + jump_ns)
        torch.cos(x)
        mtp.step()
        torch.tan(x)
    trace = prof.trace
    ops = {f"aten::{name}" for name in ("sin", "cos", "tan")}
    found = [(name, int(step)) for name, step in zip(names(prof), trace.step, strict=True) if name in ops]
    assert found == [("aten::sin", 0), ("aten::cos", 1), ("aten::tan", 2)]
    assert (trace.duration_ns >= 0).all()
    assert 0 <= trace.ended_ns - trace.began_ns < HOUR_NS // 2


class Recorded:
    """One event as Kineto gives it."""

    def __init__(self, name: str, start_ns: int, duration_ns: int) -> None:
        self._name, self._start_ns, self._duration_ns = name, start_ns, duration_ns

    def name(self) -> str:
        return self._name

    def start_ns(self) -> int:
        return self._start_ns

    def duration_ns(self) -> int:
        return self._duration_ns % 2**64

    def start_thread_id(self) -> int:
        return 1

    end_thread_id = fwd_thread_id = device_resource_id = start_thread_id

    def scope(self) -> int:
        return 0

    def sequence_nr(self) -> int:
        return -1

    def is_async(self) -> bool:
        return False


def test_kineto_s_own_times_may_be_wrong_and_the_trace_is_ordered_and_never_negative() -> None:
    events = [Recorded("aten::b", 200, -150), Recorded("aten::a", 100, 50), Recorded("aten::c", 300, 0)]
    runtime: Any = SimpleNamespace(
        _C=SimpleNamespace(
            _autograd=SimpleNamespace(_KinetoEvent=Recorded), _get_privateuse1_backend_name=lambda: "privateuseone"
        )
    )
    trace = build_trace(SimpleNamespace(events=lambda: events), runtime, Request(), {})
    assert [trace.names[name] for name in trace.name] == ["aten::a", "aten::b", "aten::c"]
    assert trace.start_ns.tolist() == [100, 200, 300]
    assert trace.duration_ns.tolist() == [50, 0, 0]
