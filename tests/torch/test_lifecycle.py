"""The life of a `profile`: what its callback may do, what a block leaves behind, what is refused at once."""

import asyncio
import copy
import json

import pytest
from recording import HOOKS

import mtprof_nb as mtp

torch = pytest.importorskip("torch")


def top(prof):
    made = ("aten::ones", "aten::zeros", "aten::eye")
    return [event.name for event in prof.events() if event.name in made and event.cpu_parent is None]


def every_step(**options):
    return mtp.profile(schedule=mtp.schedule(active=1, repeat=3), **options)


def test_a_callback_may_stop_the_profiler_and_another_one_starts_then():
    prof = every_step(on_trace_ready=lambda ready: ready.stop())
    prof.start()
    torch.ones(1)
    prof.step()
    assert mtp.active() is None
    assert mtp.last() is prof
    with pytest.raises(mtp.SessionError, match="stop\\(\\) without start\\(\\)"):
        prof.stop()
    with mtp.profile() as other:
        torch.zeros(1)
    assert "aten::zeros" in [event.name for event in other.events()]


def test_a_callback_that_stops_at_the_end_of_a_block_stops_it_once():
    called = []

    def ready(prof):
        called.append(len(prof.events()))
        prof.stop()

    with mtp.profile(on_trace_ready=ready):
        torch.ones(1)
    assert len(called) == 1
    assert mtp.active() is None


def test_a_callback_must_not_step():
    prof = every_step(on_trace_ready=lambda ready: ready.step())
    prof.start()
    with pytest.raises(mtp.SessionError, match="step\\(\\) inside on_trace_ready"):
        prof.step()
    assert prof.step_num == 1
    prof.on_trace_ready = None
    prof.stop()
    assert mtp.active() is None


@HOOKS
def test_a_run_that_ends_in_its_warm_up_keeps_the_window_before(hook):
    ready = []
    schedule = mtp.schedule(wait=1, warmup=1, active=2)
    with mtp.profile(hook=hook, schedule=schedule, on_trace_ready=lambda prof: ready.append(prof.trace)) as prof:
        for _ in range(5):
            torch.ones(1)
            prof.step()
    assert len(ready) == 1
    assert prof.trace is ready[0]
    assert [event.name for event in prof.events()].count("aten::ones") == 2


def test_a_profiler_is_found_from_its_preparation_to_its_stop():
    prof = mtp.profile()
    prof.prepare_trace()
    assert mtp.active() is prof
    mtp.active().stop()
    assert mtp.active() is None
    with prof:
        assert mtp.active() is prof
    assert mtp.active() is None


def test_the_execution_trace_of_a_block_is_complete_when_it_ends(tmp_path):
    path = tmp_path / "execution.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    with mtp.profile(execution_trace_observer=observer):
        torch.ones(4, 4) @ torch.ones(4, 4)
    assert "aten::mm" in {node["name"] for node in json.loads(path.read_text())["nodes"]}


def test_the_execution_trace_is_complete_too_where_the_block_fails(tmp_path):
    path = tmp_path / "execution.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))

    def failing():
        with mtp.profile(execution_trace_observer=observer):
            torch.ones(4, 4) @ torch.ones(4, 4)
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        failing()
    assert "aten::mm" in {node["name"] for node in json.loads(path.read_text())["nodes"]}


def test_the_environment_can_ask_for_an_execution_trace(monkeypatch):
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    prof = mtp.profile()
    assert isinstance(prof.execution_trace_observer, torch.profiler.ExecutionTraceObserver)
    prof.execution_trace_observer.cleanup()
    monkeypatch.delenv("ENABLE_PYTORCH_EXECUTION_TRACE")
    assert mtp.profile().execution_trace_observer is None


@pytest.mark.parametrize("call", ["add_metadata_json", "preset_metadata_json"])
@pytest.mark.parametrize(("key", "value"), [("k", 3), ("k", None), ("k", {"a": 1}), (3, "text")])
def test_metadata_that_is_no_text_is_refused_at_the_call(call, key, value, tmp_path):
    prof = mtp.profile()
    with pytest.raises(TypeError, match="convert it with json"):
        getattr(prof, call)(key, value)
    with prof:
        pass
    prof.export_chrome_trace(tmp_path / "trace.json")


def test_a_decorated_coroutine_is_recorded_to_its_end():
    prof = mtp.profile()

    @prof
    async def work(size):
        await asyncio.sleep(0)
        return torch.ones(size)

    assert asyncio.run(work(3)).shape == (3,)
    assert asyncio.iscoroutinefunction(work)
    assert top(prof) == ["aten::ones"]


def test_a_decorated_generator_is_recorded_from_its_first_item_to_its_end():
    prof = mtp.profile()

    @prof
    def work():
        yield torch.ones(1)
        yield torch.zeros(1)
        return "done"

    generator = work()
    torch.eye(2)
    assert [item.item() for item in generator] == [1.0, 0.0]
    assert top(prof) == ["aten::ones", "aten::zeros"]
    next(work())
    assert mtp.active() is None


def test_a_decorated_async_generator_is_recorded_to_its_end():
    prof = mtp.profile()

    @prof
    async def work():
        yield torch.ones(1)
        yield torch.zeros(1)

    async def gather():
        return [item.item() async for item in work()]

    assert asyncio.run(gather()) == [1.0, 0.0]
    assert top(prof) == ["aten::ones", "aten::zeros"]


def test_after_a_recording_the_low_level_profiler_still_answers_as_torchs():
    prof = mtp.profile(hook="kineto")
    assert prof.profiler is None
    with prof:
        torch.ones(1)
        assert isinstance(prof.profiler, torch.autograd.profiler.profile)
    assert prof.profiler.self_cpu_time_total == prof.key_averages().self_cpu_time_total
    assert prof.profiler.total_average().count == len(prof.events())


def test_what_torch_calls_device_and_filters_can_be_read():
    activity = torch.profiler.ProfilerActivity.CPU
    assert mtp.profile(activities=[activity]).use_device is None
    assert mtp.profile(activities=[activity]).activity_filters == {}
    filtered = mtp.profile(activities=[{activity: ["cpu_op"]}])
    assert filtered.activity_filters == {mtp.ProfilerActivity.CPU: {"cpu_op"}}


@pytest.mark.parametrize("most", [0, -1, 1.5, True, None, "9"])
def test_max_events_is_a_whole_number(most):
    with pytest.raises(ValueError, match="max_events must be a whole number of at least 1"):
        mtp.profile(max_events=most)


def test_a_single_name_is_no_list_of_activities():
    with pytest.raises(ValueError, match=r"write \['CPU'\] for 'CPU'"):
        mtp.profile(activities="CPU")


def test_rows_of_a_recording_can_be_copied_deeply():
    with mtp.profile() as prof:
        torch.ones(1)
    assert copy.deepcopy(prof.key_averages()).table() == prof.key_averages().table()


def test_a_trace_of_a_process_group_tells_of_it(tmp_path):
    groups = pytest.importorskip("torch.distributed")
    if not groups.is_available():
        pytest.skip("this build of torch has no process groups")
    groups.init_process_group("gloo", store=groups.HashStore(), rank=0, world_size=1)
    try:
        with mtp.profile() as prof:
            torch.ones(1)
    finally:
        groups.destroy_process_group()
    prof.export_chrome_trace(tmp_path / "trace.json")
    found = json.loads((tmp_path / "trace.json").read_text())["distributedInfo"]
    assert (found["backend"], found["rank"], found["world_size"], found["pg_count"]) == ("gloo", 0, 1, 1)
    assert [config["pg_size"] for config in found["pg_config"]] == [1]
    with mtp.profile() as prof:
        pass
    assert "distributedInfo" not in prof.trace.metadata
