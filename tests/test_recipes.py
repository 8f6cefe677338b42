"""The recipes of CONTRIBUTING, followed to the letter: a hook, a column of `Trace`, a tab, a flag."""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import pytest
import traces
from recording import EVERY_FLAG
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.capture.buffers.buffer import Buffer
from mtprof_nb.capture.buffers.freezing import Vocabulary, freeze
from mtprof_nb.capture.hook import Hook, Request
from mtprof_nb.capture.registry import HOOK_KINDS, HookKind
from mtprof_nb.cell import flags, options
from mtprof_nb.errors import HookError
from mtprof_nb.model import schema
from mtprof_nb.model.file import recording_reader
from mtprof_nb.model.merge import merge
from mtprof_nb.model.schema import Absent, Int32, Int64, PointsInto, schema_of
from mtprof_nb.model.source_files import is_user_file
from mtprof_nb.model.trace import OP, StackTree, Trace
from mtprof_nb.recording import Recording
from mtprof_nb.views.panel import wire
from mtprof_nb.views.scene import Answer, Question, Scene

RUNTIME = "standin_runtime"


class StandinRuntime(ModuleType):
    """A tensor runtime with one op, which a listener may run."""

    listener: Callable[[str, Callable[[], int]], int] | None = None

    def double(self, value: int) -> int:
        if self.listener is None:
            return 2 * value
        return self.listener("standin::double", lambda: 2 * value)


class StandinHook(Hook):
    """Records the ops of the stand-in runtime."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._runtime: Any = sys.modules[RUNTIME]
        self._is_on = True

    def start(self) -> None:
        self._buffer = Buffer(self._request)
        self._runtime.listener = self._run

    def stop(self) -> Trace:
        self._runtime.listener = None
        return freeze(self._buffer, Vocabulary())

    def abandon(self) -> None:
        self._runtime.listener = None

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        return self._buffer.scope(name)

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        self._is_on = enable if "CPU" in activities else self._is_on

    def _run(self, name: str, op: Callable[[], int]) -> int:
        start = time.perf_counter_ns()
        result = op()
        end = time.perf_counter_ns()
        if self._is_on and self._buffer.number() <= self._buffer.limit:
            self._buffer.local.ops.extend((name, "CPU", start, end))
        return result


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandinRuntime]:
    """The stand-in runtime, imported, and its hook registered by one entry."""
    made = StandinRuntime(RUNTIME)
    monkeypatch.setitem(sys.modules, RUNTIME, made)
    kind = HookKind(
        "standin",
        RUNTIME,
        f"{__name__}:StandinHook",
        event_ns=1_000,
        flag_ns={"record_shapes": 500},
        devices=lambda runtime: ("NPU",) if runtime is made else (),
        runs_in_python=True,
    )
    monkeypatch.setitem(HOOK_KINDS, "standin", kind)
    yield made
    assert made.listener is None


def test_a_hook_that_follows_the_recipe_records_stops_and_shows(
    runtime: StandinRuntime, capsys: pytest.CaptureFixture[str]
) -> None:
    with mtp.profile(hook="standin", **EVERY_FLAG) as prof:
        with mtp.record_function("mine"):
            assert runtime.double(21) == 42
        prof.step()
        runtime.double(1)

    found = prof.trace
    assert [found.names[name] for name in found.name] == ["mine", "standin::double", "standin::double"]
    assert found.step.tolist() == [0, 0, 1]
    assert found.hooks == ("standin",)
    assert found.between_ops_ns == 3 * 1_500 == found.overhead_ns - found.own_ns
    assert [(row.key, row.count) for row in prof.key_averages()] == [("mine", 1), ("standin::double", 2)]
    prof.show()
    assert "standin::double      2" in capsys.readouterr().out


def test_a_hook_that_follows_the_recipe_has_times_within_the_recording(runtime: StandinRuntime) -> None:
    with mtp.profile(hook="standin") as prof, mtp.record_function("mine"):
        runtime.double(1)

    found = prof.trace
    (scope, op), (scope_ns, op_ns) = found.start_ns.tolist(), found.duration_ns.tolist()
    assert found.began_ns <= scope <= op <= op + op_ns <= scope + scope_ns <= found.ended_ns


def test_a_hook_that_follows_the_recipe_is_one_of_those_that_auto_takes(runtime: StandinRuntime) -> None:
    with mtp.profile() as prof:
        runtime.double(1)
    assert "standin" in prof.trace.hooks
    assert "standin::double" in prof.trace.names


def test_the_devices_and_the_sources_of_a_runtime_are_known_from_the_hooks_entry(runtime: StandinRuntime) -> None:
    assert mtp.ProfilerActivity.NPU in mtp.supported_activities()
    assert mtp.profile(hook="standin", activities=["npu"]).activities == {mtp.ProfilerActivity.NPU}
    runtime.__file__ = "/home/me/checkout/standin_runtime/__init__.py"
    is_user_file.cache_clear()
    assert not is_user_file("/home/me/checkout/standin_runtime/ops.py")
    assert is_user_file("/home/me/checkout/mine.py")
    is_user_file.cache_clear()


def test_a_hook_that_follows_the_recipe_is_toggled_and_limited(runtime: StandinRuntime) -> None:
    with mtp.profile(hook="standin") as prof:
        prof.toggle_collection_dynamic(False, ["CPU"])
        runtime.double(1)
        prof.toggle_collection_dynamic(True, ["CPU"])
        runtime.double(2)
    assert len(prof.trace) == 1
    limited = mtp.profile(hook="standin", max_events=2)
    limited.start()
    for value in range(5):
        runtime.double(value)
    with pytest.warns(UserWarning, match="max_events=2"):
        limited.stop()
    assert (len(limited.trace), limited.trace.dropped) == (2, 3)


def test_a_hook_whose_runtime_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = HookKind("standin", "no_such_runtime", f"{__name__}:StandinHook", event_ns=1_000)
    monkeypatch.setitem(HOOK_KINDS, "standin", kind)
    with pytest.raises(HookError, match="needs 'no_such_runtime', which is not installed"):
        mtp.profile(hook="standin").start()


@dataclass(frozen=True, eq=False, repr=False)
class WarmTrace(Trace):
    """A trace with two columns more."""

    #: Degrees, -1 if unknown.
    degrees: Annotated[Int64 | None, Absent(-1)] = None
    #: C++ stack of the event.
    native_stack: Annotated[Int32 | None, PointsInto("native_stacks")] = None
    #: C++ stacks.
    native_stacks: StackTree | None = None


def test_a_new_column_is_merged_selected_and_saved_without_further_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(schema._SCHEMAS, Trace, schema_of(WarmTrace))
    monkeypatch.setattr(traces, "Trace", WarmTrace)
    monkeypatch.setattr(recording_reader, "Trace", WarmTrace)
    frames = [("b.cpp", 2, "g"), ("a.cpp", 1, "f")]
    warm = make_trace([event("mm", 5, 9, degrees=40, native_stack=frames)])
    cold = make_trace([event("add", 0, 3)])

    both: Any = merge([warm, cold])

    assert both.degrees.tolist() == [-1, 40]
    assert both.native_stack.tolist() == [-1, 1]
    assert both.native_stacks.stack(1) == frames
    assert warm.nbytes == cold.nbytes + 8 + 4 + 2 * (4 + 4), "a column of degrees, one of stacks, and two frames"
    assert both.take(np.array([1])).degrees.tolist() == [40]
    assert merge([cold, cold]).columns.keys() == make_trace([]).columns.keys()
    Recording(both).save(tmp_path / "run.mtp")
    assert traces.differences(mtp.load(tmp_path / "run.mtp").trace, both) == []


class CountTab:
    """Answers how many ops there are."""

    def __init__(self, scene: Scene) -> None:
        self._trace = scene.trace

    def first(self) -> Answer:
        return {"ops": int((self._trace.kind == OP).sum())}

    def answer(self, question: Question) -> Answer:
        return {"twice": 2 * question["ops"]}


def test_a_tab_that_follows_the_recipe_is_in_the_panel_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from mtprof_nb.views.panel import widget
    from mtprof_nb.views.panel.tabs import TABS, TabKind

    folder = "mtprof_nb.views.tabs.count"
    monkeypatch.setitem(sys.modules, folder, ModuleType(folder))
    monkeypatch.setitem(sys.modules, f"{folder}.count_tab", sys.modules[__name__])
    monkeypatch.setattr(widget, "ALL_TABS", (*TABS, TabKind("count", "Count")))
    scene = Scene(make_trace([event("mm", 0, 5), event("mine", 0, 9, kind="scope")]))
    panel = widget.Panel(scene, ["operators", "count"], None, {})
    try:
        assert panel.tabs == [{"name": "operators", "title": "Operators"}, {"name": "count", "title": "Count"}]
        assert panel.first["count"] == wire.packed({"ops": 1})
        assert panel._answer({"tab": "count", "ask": "twice", "ops": 3}) == ({}, [wire.packed({"twice": 6})])
    finally:
        panel.close()


def test_a_flag_at_the_end_of_the_options_is_read_configured_and_listed_before_the_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = options.Option(("--warm",), "warm", "run the cell once before")
    monkeypatch.setattr(options, "OPTIONS", (*options.OPTIONS, added))
    found: Any = importlib.util.spec_from_file_location("flags_with_one_more", flags.__file__)
    made: Any = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, found.name, made)

    found.loader.exec_module(made)

    assert made.PARSER.read("--warm x = 1") == ({"warm": True}, "x = 1")
    assert made.CONFIG_PARSER.read("--warm") == ({"warm": True}, "")
    for parser in (made.PARSER, made.CONFIG_PARSER):
        assert parser.read("-h") == ({"help": True}, "")
        assert parser.format_help().count("--warm") == parser.format_help().count("--help") == 1
        assert parser.options[-1] is options.HELP
