"""`record_function` where others listen to torch: outside our sessions it is torch's own, inside they see it too."""

import asyncio
import json
import subprocess
import sys
import types

import pytest
import torch
from recording import HOOKS, NATIVE

import mtprof_nb as mtp

BOTH = pytest.mark.parametrize("record_function", [torch.profiler.record_function, mtp.record_function])
EXPECTED = ["block", "with arguments", "decorated", "decorated"]


@pytest.fixture(autouse=True, scope="module")
def silent_kineto():
    """Kineto's first user decides whether it prints: ours."""
    with mtp.profile():
        pass


def program(record_function):
    with record_function("block"):
        torch.ones(2)
    with record_function("with arguments", "some arguments"):
        torch.ones(2)

    @record_function("decorated")
    def decorated():
        return torch.ones(2)

    decorated()
    decorated()


def annotations(prof):
    return [event.name for event in prof.events() if event.is_user_annotation]


def observed(path):
    return [node for node in json.loads(path.read_text())["nodes"] if node["name"] in EXPECTED]


@BOTH
def test_torch_s_profiler_records_it(record_function):
    with torch.profiler.profile() as prof:
        program(record_function)
    assert annotations(prof) == EXPECTED
    owners = [event.cpu_parent.name for event in prof.events() if event.name == "aten::ones"]
    assert owners == EXPECTED


@BOTH
def test_an_execution_trace_observer_is_told_of_it(record_function, tmp_path):
    path = tmp_path / "execution.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    program(record_function)
    observer.stop()
    observer.unregister_callback()
    assert [node["name"] for node in observed(path)] == EXPECTED
    assert "some arguments" in json.dumps(observed(path)[1]["inputs"])


@BOTH
def test_a_trace_of_torchscript_contains_it(record_function):
    def function(x):
        with record_function("inside"):
            return x + 1

    traced = torch.jit.trace(function, torch.ones(2))
    assert [node.kind() for node in traced.graph.nodes() if node.kind().startswith("profiler::")] == [
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
    ]
    with torch.profiler.profile() as prof:
        traced(torch.ones(2))
    assert "inside" in {event.name for event in prof.events()}


@HOOKS
def test_inside_a_session_it_is_recorded_once_and_others_are_told(hook, tmp_path):
    path = tmp_path / "execution.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    with mtp.profile(hook=hook, execution_trace_observer=observer) as prof:
        program(mtp.record_function)
    assert [event.name for event in prof.events() if event.kind == "scope"] == EXPECTED
    assert [node["name"] for node in observed(path)] == EXPECTED


@pytest.mark.parametrize("hook", [NATIVE])
def test_torch_s_profiler_and_hook_native_record_the_same_scopes(hook):
    with torch.profiler.profile() as theirs, mtp.profile(hook=hook) as ours:
        program(mtp.record_function)
        program(torch.profiler.record_function)
    assert [event.name for event in ours.events() if event.kind == "scope"] == EXPECTED * 2
    assert annotations(theirs) == EXPECTED * 2


@pytest.mark.parametrize("opened_first", ["scope", "profile"])
@HOOKS
def test_a_scope_that_a_recording_begins_or_ends_in_is_closed_where_it_was_opened(hook, opened_first):
    scope, ours = mtp.record_function("crossing"), mtp.profile(hook=hook)
    with mtp.record_function("around"):
        scope.__enter__() if opened_first == "scope" else ours.start()
        ours.start() if opened_first == "scope" else scope.__enter__()
        torch.ones(2)
        scope.__exit__(None, None, None) if opened_first == "scope" else ours.stop()
        ours.stop() if opened_first == "scope" else scope.__exit__(None, None, None)
    found = [event.name for event in ours.events() if event.kind == "scope"]
    assert found == ([] if opened_first == "scope" else ["crossing"])
    with mtp.profile(hook=hook) as following:
        program(mtp.record_function)
    assert [event.name for event in following.events() if event.kind == "scope"] == EXPECTED


def test_tasks_that_share_a_scope_close_their_own():
    shared = mtp.record_function("shared")

    async def task(turns):
        with shared:
            for _ in range(turns):
                await asyncio.sleep(0)

    async def both():
        await asyncio.gather(task(3), task(1))

    with torch.profiler.profile() as prof:
        asyncio.run(both())
    recorded = [event for event in prof.profiler.kineto_results.events() if event.name() == "shared"]
    outer, inner = (event.start_ns() + event.duration_ns() for event in recorded)
    assert outer > inner


@BOTH
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.filterwarnings("ignore:.*is ignored.*", "ignore:Profiler function")
def test_compiled_code_is_compiled_as_if_it_were_not_there(record_function, fullgraph):
    torch._dynamo.reset()
    graphs = []

    def count(graph, _inputs):
        graphs.append(graph)
        return graph

    @record_function("decorated")
    def doubled(x):
        return x * 2

    def function(x):
        with record_function("block"):
            return doubled(x) + 1

    compiled = torch.compile(function, backend=count, fullgraph=fullgraph)
    assert compiled(torch.ones(2)).tolist() == [3, 3]
    with mtp.profile(hook="kineto"):
        assert compiled(torch.ones(2)).tolist() == [3, 3]
    if record_function is mtp.record_function:
        assert len(graphs) == 1


def test_while_torch_is_being_imported_it_does_nothing(monkeypatch):
    for name in ("torch.compiler", "torch.autograd.profiler"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    with mtp.record_function("early") as scope:
        assert scope._open == []


def test_without_torch_it_does_nothing():
    program = (
        "import sys, mtprof_nb as mtp\n"
        "with mtp.record_function('x') as scope: pass\n"
        "print('torch' in sys.modules, scope._open)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "False []\n"
