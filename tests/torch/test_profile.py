"""`profile` on PyTorch: its life, its scopes and threads, and what it refuses."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest
from recorded_rows import names_of

import mtprof_nb as mtp
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.trace import KINDS
from mtprof_nb.model.tracks import THREADS

torch = pytest.importorskip("torch")


def test_the_block_is_recorded_and_only_the_block():
    a = torch.ones(3, 3)
    torch.sub(a, a)
    with mtp.profile() as prof:
        torch.mm(a, a)
    torch.add(a, a)
    assert "aten::mm" in names_of(prof)
    assert not {"aten::sub", "aten::add"} & set(names_of(prof))
    assert prof.trace.hooks in (("native",), ("kineto",))
    assert mtp.last() is prof


def test_a_decorated_function_is_recorded_and_keeps_its_result():
    prof = mtp.profile()

    @prof
    def double(x):
        """Twice."""
        return torch.add(x, x)

    assert double(torch.ones(2)).tolist() == [2.0, 2.0]
    assert double.__doc__ == "Twice."
    assert "aten::add" in names_of(prof)


def test_the_users_exception_arrives_and_what_ran_before_is_kept():
    prof = mtp.profile()

    @prof
    def work():
        torch.ones(2)
        1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError) as raised:
        work()
    assert raised.value.__context__ is None
    assert "aten::ones" in names_of(prof)


def test_an_exception_of_on_trace_ready_reaches_the_user_but_never_masks_theirs():
    def fail(_):
        raise KeyError("callback")

    with pytest.raises(KeyError, match="callback"), mtp.profile(on_trace_ready=fail):
        torch.ones(2)
    with (
        pytest.warns(mtp.MtprofWarning, match="could not finish: 'callback'"),
        pytest.raises(ZeroDivisionError),
        mtp.profile(on_trace_ready=fail),
    ):
        1 / 0  # noqa: B018


def test_a_block_may_stop_its_profiler_itself():
    with mtp.profile() as prof:
        torch.ones(2)
        prof.stop()
        torch.zeros(2)
    assert "aten::ones" in names_of(prof)
    assert "aten::zeros" not in names_of(prof)


def test_a_second_session_is_refused_by_name_and_the_first_goes_on():
    with mtp.profile(name="outer") as outer:
        torch.ones(2)
        with pytest.raises(RuntimeError, match="profiler 'outer' is already active"):
            mtp.profile(name="inner").start()
        torch.zeros(2)
    assert {"aten::ones", "aten::zeros"} <= set(names_of(outer))


def test_a_foreign_torch_profiler_is_refused_and_goes_on():
    with torch.profiler.profile() as theirs:
        torch.ones(2)
        with pytest.raises(RuntimeError, match="a torch profiler is already active"), mtp.profile(hook="kineto"):
            pass
        torch.zeros(2)
    keys = {row.key for row in theirs.key_averages()}
    assert {"aten::ones", "aten::zeros"} <= keys


def test_step_and_stop_outside_a_session_are_refused():
    prof = mtp.profile()
    for call in (prof.step, prof.stop, mtp.step):
        with pytest.raises(RuntimeError, match=r"start|active"):
            call()
    with pytest.raises(AssertionError, match="Profiler must be initialized before starting trace"):
        prof.start_trace()


def test_unknown_and_missing_hooks_are_refused():
    with pytest.raises(mtp.HookError, match="unknown hook 'cupti': use 'auto' or one of native, kineto, mindtorch_v2"):
        mtp.profile(hook="cupti").start()
    with pytest.raises(mtp.HookError, match="hook 'candle' needs 'candle', which is not installed"):
        mtp.profile(hook="candle").start()
    with mtp.profile():
        pass


def test_a_user_scope_nests_is_closed_by_exceptions_and_decorates():
    @mtp.record_function("decorated")
    def work():
        torch.ones(1)

    with mtp.profile() as prof:
        with mtp.record_function("outer"):
            with pytest.raises(ZeroDivisionError), mtp.record_function("inner"):
                1 / 0  # noqa: B018
            work()
        with torch.profiler.record_function("torch's own"):
            torch.zeros(1)
    scopes = [name for name, kind in zip(names_of(prof), prof.trace.kind, strict=True) if KINDS[kind] == "scope"]
    assert scopes == ["outer", "inner", "decorated", "torch's own"]
    by_name = {name: row for row, name in enumerate(names_of(prof))}
    outer, inner = by_name["outer"], by_name["inner"]
    assert prof.trace.end_ns[inner] <= prof.trace.end_ns[outer]


def test_every_thread_that_runs_ops_has_its_own_lane():
    def work():
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))

    with mtp.profile() as prof:
        torch.zeros(2)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = prof.trace
    lanes = {
        name: {int(t) for t, n in zip(trace.track, names_of(prof), strict=True) if n == name} for name in names_of(prof)
    }
    assert len(lanes["aten::mm"]) == 2
    assert not lanes["aten::mm"] & lanes["aten::zeros"]


def test_metadata_is_kept_as_json_text_and_refuses_what_torch_refuses():
    prof = mtp.profile()
    prof.preset_metadata_json("before", "[1, 2]")
    with prof:
        torch.ones(1)
        prof.add_metadata("text", 'say "hi"')
        prof.add_metadata_json("json", '{"a": 1}')
        with pytest.raises(AttributeError):
            prof.add_metadata("number", 3)
    prof.add_metadata("late", "kept")
    metadata = dict(prof.trace.metadata)
    assert json.loads(metadata.pop(THREADS))["threads"] == torch.get_num_threads()
    assert metadata == {
        "before": "[1, 2]",
        "text": '"say \\"hi\\""',
        "json": '{"a": 1}',
        "late": '"kept"',
    }


def test_a_trace_has_the_id_that_the_callback_gives():
    with mtp.profile(custom_trace_id_callback=lambda: "mine") as prof:
        pass
    assert prof.get_trace_id() == "mine"
    assert prof.trace.trace_id == "mine"


def test_the_callback_of_ids_can_be_replaced():
    prof = mtp.profile(custom_trace_id_callback=lambda: "first")
    prof.set_custom_trace_id_callback(lambda: "second")
    with prof:
        pass
    assert prof.trace.trace_id == "second"


def test_ops_of_a_disabled_activity_are_left_out_until_it_is_enabled_again():
    with mtp.profile() as prof:
        for _ in range(2):
            torch.ones(2)
            prof.toggle_collection_dynamic(False, ["cpu"])
            torch.zeros(2)
            prof.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
            torch.eye(2)
    kept = names_of(prof)
    assert kept.count("aten::ones") == 2
    assert "aten::eye" in kept
    assert "aten::zeros" not in kept


def test_nothing_is_printed_on_stderr(capfd):
    with mtp.profile(with_stack=True):
        torch.ones(2)
    assert capfd.readouterr().err == ""


def test_use_cuda_is_deprecated_as_in_torch():
    with pytest.warns(FutureWarning, match="`use_cuda` is deprecated"):
        mtp.profile(use_cuda=False)


def test_scopes_of_tasks_that_take_turns_own_nothing_of_each_other():
    async def task(name, turns):
        with mtp.record_function(name):
            for _ in range(turns):
                await asyncio.sleep(0)
            torch.ones(2)

    @mtp.record_function("decorated")
    async def decorated():
        await asyncio.sleep(0.001)

    async def both():
        await asyncio.gather(task("first", 1), task("second", 3))
        with mtp.record_function("alone"):
            torch.zeros(2)
        await decorated()

    with mtp.profile() as prof:
        asyncio.run(both())
    trace = prof.trace
    rows = {name: row for row, name in enumerate(names_of(prof))}
    assert {name: bool(trace.is_async[rows[name]]) for name in ("first", "second", "alone", "decorated")} == {
        "first": True,
        "second": True,
        "alone": False,
        "decorated": False,
    }
    parent = nesting(trace).parent
    owners = {name: names_of(prof)[parent[row]] if parent[row] >= 0 else None for name, row in rows.items()}
    assert owners["aten::ones"] is None
    assert owners["aten::zeros"] == "alone"
    assert trace.duration_ns[rows["decorated"]] >= 1_000_000


@pytest.mark.parametrize("flags", [{}, {"with_stack": True}, {"profile_memory": True}, {"hook": "kineto"}])
def test_a_forked_child_is_not_recorded_and_can_profile_itself(flags):
    program = f"""
import os, torch, mtprof_nb as mtp
x = torch.ones(3)
with mtp.profile(**{flags!r}) as prof:
    torch.sin(x)
    child = os.fork()
    if not child:
        torch.cos(x)
        with mtp.profile(**{flags!r}) as own:
            torch.tan(x)
        os._exit(0 if {{"aten::tan"}} <= set(own.trace.names) else 1)
    assert os.waitpid(child, 0)[1] == 0
    torch.exp(x)
assert {{"aten::sin", "aten::exp"}} <= set(prof.trace.names), prof.trace.names
assert not {{"aten::cos", "aten::tan"}} & set(prof.trace.names)
print("whole")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "whole\n", done.stderr


def test_a_recorder_other_than_kineto_is_refused():
    config = torch._C._profiler._ExperimentalConfig(custom_profiler_config='{"backend": "cuspy"}')
    with pytest.raises(mtp.HookError, match="asks for another recorder: leave it out"):
        mtp.profile(hook="kineto", experimental_config=config).start()


@pytest.mark.parametrize("flags", [{}, {"profile_memory": True}, {"with_stack": True}], ids=str)
@pytest.mark.parametrize("all_threads", [False, True])
def test_a_config_of_torchs_is_passed_on(all_threads, flags):
    config = torch._C._profiler._ExperimentalConfig(verbose=True, profile_all_threads=all_threads)
    with mtp.profile(hook="kineto", experimental_config=config, **flags) as prof:
        torch.ones(3)

    assert "aten::ones" in {event.name for event in prof.events()}
