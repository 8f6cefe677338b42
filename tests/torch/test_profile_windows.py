"""`profile` on PyTorch: steps, the windows of a schedule, and what observes a window."""

import pytest
from recorded_rows import names_of

import mtprof_nb as mtp

torch = pytest.importorskip("torch")


def test_the_step_after_a_failing_on_trace_ready_is_a_scope_again():
    def fail_once(prof):
        if prof.step_num == 1:
            raise KeyError("callback")

    prof = mtp.profile(schedule=mtp.schedule(wait=0, warmup=0, active=1), on_trace_ready=fail_once)
    prof.start()
    with pytest.raises(KeyError, match="callback"):
        prof.step()
    torch.ones(2)
    prof.step()
    assert names_of(prof)[:2] == ["ProfilerStep#1", "aten::ones"]
    prof.stop()


def test_events_know_the_step_they_started_in():
    with mtp.profile() as prof:
        for _ in mtp.steps(range(3)):
            torch.ones(2)
    step = [int(prof.trace.step[row]) for row, name in enumerate(names_of(prof)) if name == "aten::ones"]
    assert step == [0, 1, 2]


def test_a_loop_over_no_items_leaves_the_step_in_which_it_stands():
    with mtp.profile() as prof:
        prof.step()
        torch.ones(2)
        assert list(mtp.steps([])) == []
    assert [number for _, number in prof.trace.step_starts] == [0, 1]


def test_each_window_of_a_schedule_is_shown_its_own_events():
    seen = []
    x = torch.ones(2)
    ops = (torch.sin, torch.cos, torch.tan, torch.exp, torch.log, torch.abs)

    def ready(prof):
        seen.append({name for name in names_of(prof) if name in {f"aten::{op.__name__}" for op in ops}})

    with mtp.profile(schedule=mtp.schedule(wait=1, warmup=1, active=1), on_trace_ready=ready) as prof:
        for op in ops:
            op(x)
            prof.step()
    assert seen == [{"aten::tan"}, {"aten::abs"}]
    assert "ProfilerStep#5" in names_of(prof)


def test_windows_accumulate_on_request():
    with mtp.profile(schedule=mtp.schedule(wait=1, active=1), acc_events=True) as prof:
        for op in (torch.ones, torch.zeros, torch.rand, torch.randn):
            op(2)
            prof.step()
    kept = set(names_of(prof))
    assert {"aten::zeros", "aten::randn"} <= kept
    assert "aten::rand" not in kept


def test_a_window_that_stop_cuts_short_is_delivered():
    seen = []
    with mtp.profile(
        schedule=mtp.schedule(wait=0, warmup=0, active=5), on_trace_ready=lambda p: seen.append(len(p.trace))
    ) as p:
        torch.ones(2)
        p.step()
    assert len(seen) == 1
    assert seen[0] > 0


def test_a_schedule_whose_steps_never_came_leaves_a_warning():
    with (
        pytest.warns(mtp.MtprofWarning, match=r"0 steps recorded: call step\(\)"),
        mtp.profile(schedule=mtp.schedule(wait=1, active=1)),
    ):
        torch.ones(2)


def test_torchs_own_schedule_is_taken():
    with mtp.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(3):
            torch.ones(2)
            prof.step()
    assert names_of(prof).count("aten::ones") == 1


def test_a_schedule_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="schedule must be callable"):
        mtp.profile(schedule=3)


class Observer:
    def __init__(self):
        self.calls = []

    def start(self):
        self.calls.append("start")

    def stop(self):
        self.calls.append("stop")

    def cleanup(self):
        self.calls.append("cleanup")


def test_the_execution_trace_observer_is_started_and_stopped_with_the_window():
    observer = Observer()
    with mtp.profile(execution_trace_observer=observer):
        observer.calls.append("body")
    assert observer.calls == ["start", "body", "stop", "cleanup"]


def test_the_execution_trace_observer_is_stopped_where_the_window_cannot_start(monkeypatch):
    def refuse(_):
        raise RuntimeError("cannot start")

    observer = Observer()
    monkeypatch.setattr("mtprof_nb.capture.window.Window.start", refuse)
    prof = mtp.profile(execution_trace_observer=observer, schedule=mtp.schedule(wait=0, warmup=1, active=1))
    prof.start()
    with pytest.raises(RuntimeError, match="cannot start"):
        prof.step()
    assert observer.calls == ["start", "stop"]
    prof.stop()
    assert observer.calls == ["start", "stop"]


def test_the_execution_trace_observer_is_stopped_where_the_step_cannot_be_left(monkeypatch):
    def fail():
        raise RuntimeError("cannot leave")

    observer = Observer()
    prof = mtp.profile(execution_trace_observer=observer)
    prof.start()
    monkeypatch.setattr(prof, "_leave_step", fail)
    with pytest.raises(RuntimeError, match="cannot leave"):
        prof.stop()
    assert observer.calls == ["start", "stop"]


def test_a_window_that_the_user_ended_is_delivered_when_the_profiler_stops() -> None:
    delivered = []
    with mtp.profile(on_trace_ready=lambda prof: delivered.append(len(prof.trace))) as prof:
        torch.ones(2)
        prof.stop_trace()
        torch.ones(2)
    assert delivered == [len(prof.trace)]
    assert len(prof.trace) > 0
