"""One count of ops and one time in ops: figures, lines, averages, events and the panel's tables agree.

One exception follows torch: with stacks, `key_averages()` and `events()` omit Python code inside an op from its time.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from recording import EVERY_FLAG, NATIVE
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.analysis.costs import counted_ops, in_ops_ns
from mtprof_nb.analysis.groups import group
from mtprof_nb.model.trace import OP, Trace
from mtprof_nb.recording import Results
from mtprof_nb.tables.averages import key_averages
from mtprof_nb.tables.events import Events
from mtprof_nb.tables.line_table import Lines
from mtprof_nb.tables.operators.spent import spent_by
from mtprof_nb.views.strip import strip_of

CELL = "<ipython-input-1-0>"


def counts(trace: Trace) -> dict[str, int]:
    """How many ops there are, by everyone who says so."""
    lines, events = Lines(trace), Events(trace)
    strip = {figure.title: figure.text for figure in strip_of(trace).figures}
    averages, threads = key_averages(trace), group(trace, "thread")
    others = sum(row.count for row in averages if row.key in no_ops(trace))
    return {
        "figure": int(strip["ops"].replace(",", "")),
        "lines": sum(row.count for row in lines),
        "ops of lines": sum(op.count for row in lines for op in lines.ops(row)),
        "averages": sum(row.count for row in averages) - others,
        "total average": averages.total_average().count - others,
        "events": sum(one.kind == "op" for one in events),
        "threads": int(spent_by(trace, "thread", threads).count.sum()),
    }


def no_ops(trace: Trace) -> set[str]:
    """The keys of rows that are no ops: scopes, frames of Python, and torch's row of allocations in no op."""
    return {"[memory]", *(one.name for one in Events(trace) if one.kind != "op")}


def times(trace: Trace) -> dict[str, float]:
    """Microseconds in ops, by everyone who says so."""
    lines, events = Lines(trace), Events(trace)
    phases = [share for share in strip_of(trace).phases if share.phase in ("forward", "backward", "optimizer", "other")]
    return {
        "figure": in_ops_ns(trace) / 1e3,
        "phases": sum(share.ns for share in phases) / 1e3,
        "lines": sum(row.self_ns for row in lines) / 1e3,
        "averages": sum(row.self_cpu_time_total for row in key_averages(trace) if row.key not in no_ops(trace)),
        "events": sum(one.self_cpu_time_total for one in events if one.kind == "op"),
    }


def test_everyone_counts_the_same_ops_and_the_same_time() -> None:
    trace = make_trace(
        [
            event("aten::linear", 0, 100_000, line=(CELL, 2)),
            event("aten::is_leaf", 10_000, 11_000, line=(CELL, 2)),
            event("aten::mm", 20_000, 60_000, line=(CELL, 2)),
            event("aten::mm", 25_000, 55_000, line=(CELL, 2)),
            event("[memory]", 30_000, 30_000, line=(CELL, 2)),
            event("aten::_version", 110_000, 112_000, line=(CELL, 3)),
            event("train", 120_000, 200_000, kind="scope", line=(CELL, 4)),
            event("profiler::_record_function_enter_new", 120_000, 121_000, line=(CELL, 4)),
            event("aten::add", 130_000, 140_000, line=(CELL, 4)),
            event("aten::output_nr", 145_000, 146_000, line=(CELL, 4)),
        ],
        began_ns=0,
        ended_ns=300_000,
    )

    assert set(counts(trace).values()) == {3}
    assert set(times(trace).values()) == {110.0}
    assert len(Events(trace)) == 4
    assert [(row.line, row.count) for row in Lines(trace)] == [(2, 2), (4, 1)]


def test_averages_and_events_leave_out_python_code_inside_an_op_where_it_was_recorded() -> None:
    ops = [event("MineBackward", 0, 100_000, line=(CELL, 2)), event("aten::mul", 30_000, 50_000, line=(CELL, 2))]
    calls = [event("backward", 20_000, 80_000, kind="python"), event("sleep", 55_000, 75_000, kind="python")]
    time_in_calls = (60 - 20 - 20) + 20

    assert set(times(make_trace(ops)).values()) == {100.0}
    found = times(make_trace([*ops, *calls]))
    assert {found.pop("averages"), found.pop("events")} == {100.0 - time_in_calls}
    assert set(found.values()) == {100.0}
    assert set(counts(make_trace([*ops, *calls])).values()) == {2}


def test_children_of_an_event_are_events_too() -> None:
    trace = make_trace(
        [
            event("a", 0, 100),
            event("aten::is_leaf", 5, 10),
            event("mm", 20, 60),
            event("mm", 25, 55),
            event("b", 30, 40),
        ]
    )
    events = Events(trace)

    assert [one.name for one in events] == ["a", "mm", "b"]
    assert [one.name for one in events[0].cpu_children] == ["mm"]
    assert [one.name for one in events[1].cpu_children] == ["b"]
    assert events[2].cpu_parent == events[1]
    assert [one.self_cpu_time_total for one in events] == [0.06, 0.03, 0.01]


def _train(torch: Any, prof: mtp.profile) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        with mtp.record_function("step"):
            loss = model(torch.randn(4, 8)).square().mean()
            assert not loss.is_leaf
            assert loss._version == loss.output_nr == 0
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        prof.step()


@pytest.mark.parametrize("flags", [{}, {"with_stack": True}, {"record_shapes": True, "profile_memory": True}])
def test_a_recording_has_one_count_of_ops_and_one_time_in_ops(flags: dict[str, bool]) -> None:
    torch = pytest.importorskip("torch")
    with mtp.profile(hook="kineto", **flags) as prof:
        _train(torch, prof)
    trace = prof.trace

    assert counted_ops(trace).sum() < (trace.kind == OP).sum()
    assert set(counts(trace).values()) == {int(counted_ops(trace).sum())}
    assert list(times(trace).values()) == pytest.approx([in_ops_ns(trace) / 1e3] * 5)


def _rows(recording: Results, *, of_chrome: bool = False) -> dict[str, Any]:
    """Lines, averages and steps of a recording, and its key figures; or those of them that a Chrome trace has."""
    of = recording.summary()
    figures = ("wall_ns", "in_ops_ns", "phases_ns", "ops", "threads", "peak_bytes")
    columns = ["forward_ns", "backward_ns", "optimizer_ns", "other_ns", "count"]
    columns += [] if of_chrome else ["memory_bytes", "allocated_bytes"]
    sums = ["count", "self_cpu_time_total", "cpu_time_total", "self_cpu_memory_usage"]
    sums += [] if of_chrome else ["flops"]
    return {
        "figures": [getattr(of, name) for name in figures],
        "lines": {
            (row.file, row.line): [getattr(row, name) for name in columns] for row in recording.lines() if row.count
        },
        # Times in whole nanoseconds, which microseconds are not.
        "averages": {row.key: [round(getattr(row, name) * 1e3) for name in sums] for row in recording.key_averages()},
        "steps": [] if of_chrome else list(recording.steps()),
    }


@pytest.mark.parametrize("hook", [NATIVE])
def test_threads_steps_and_copies_of_a_recording_tell_the_same_numbers(hook: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with ThreadPoolExecutor(2) as pool, mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        others = [pool.submit(lambda: [torch.ones(9).exp() for _ in range(100)]) for _ in range(4)]
        _train(torch, prof)
        wait(others)
    trace, of = prof.trace, prof.summary()
    prof.save(tmp_path / "run.mtp")
    prof.export_chrome_trace(tmp_path / "run.json")

    assert set(counts(trace).values()) == {of.ops} == {sum(row.ops for row in prof.steps())}
    assert list(times(trace).values()) == pytest.approx([of.in_ops_ns / 1e3] * 5)
    phases = ("forward_ns", "backward_ns", "optimizer_ns", "other_ns")
    assert sum(getattr(row, phase) for row in prof.steps() for phase in phases) == of.in_ops_ns
    assert sum(row.ops_ns for row in prof.functions()) == of.in_ops_ns
    records = trace.allocations
    outside_ops = records.nbytes[(records.stack >= 0) & (records.nbytes > 0)]
    assert sum(row.memory_bytes or 0 for row in prof.lines()) == int(outside_ops.sum()) + sum(
        event.self_cpu_memory_usage for event in prof.events() if event.kind == "op"
    )
    assert sum(event.get("flops", 0) for event in prof.events()) == sum(row.flops for row in prof.key_averages())
    assert _rows(mtp.load(tmp_path / "run.mtp")) == _rows(prof)
    chrome, recorded = (_rows(one, of_chrome=True) for one in (mtp.load(tmp_path / "run.json"), prof))
    assert chrome == recorded


@pytest.mark.parametrize("with_stack", [False, True])
def test_a_backward_that_sleeps_is_time_in_ops_and_with_stacks_no_self_time_of_torchs_rows(with_stack: bool) -> None:
    torch = pytest.importorskip("torch")

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, given: Any) -> Any:
            return given * 2

        @staticmethod
        def backward(_: Any, gradient: Any) -> Any:
            time.sleep(0.02)
            return gradient * 2

    with mtp.profile(hook="kineto", with_stack=with_stack) as prof:
        Doubled.apply(torch.ones(4, requires_grad=True)).sum().backward()
    found = times(prof.trace)

    assert found["averages"] == pytest.approx(found["events"])
    assert found["figure"] >= 20_000
    if with_stack:
        assert found["figure"] - found["averages"] >= 20_000
    else:
        assert found["figure"] == pytest.approx(found["averages"])


def test_the_events_are_as_many_as_in_torchs_own_list(record_beside_torch: Callable[..., Any]) -> None:
    torch = pytest.importorskip("torch")
    prof, torchs = record_beside_torch(lambda prof: _train(torch, prof))

    assert [one.name for one in prof.events()] == [one.name for one in torchs]


@pytest.fixture
def record_beside_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A program run once under our profiler, and torch's events of the same Kineto result."""
    torch = pytest.importorskip("torch")
    from mtprof_nb.capture.kineto import kineto_hook as kineto

    results: list[Any] = []
    original = kineto.exported_trace
    monkeypatch.setattr(kineto, "exported_trace", lambda found, *args: results.append(found) or original(found, *args))

    def record(program: Callable[[mtp.profile], None]) -> tuple[mtp.profile, Any]:
        with mtp.profile(hook="kineto") as prof:
            program(prof)
        theirs = torch.autograd.profiler.profile(use_kineto=True)
        events = torch.autograd.profiler_util.EventList(theirs._parse_kineto_results(results[0]), use_device=None)
        events._build_tree()
        return prof, events

    return record
