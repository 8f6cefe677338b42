"""Hook `native`: what it alone can do, and what it must never do to a program."""

import json
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from recorded_rows import names, rows
from recording import EVERY_FLAG, NATIVE
from torch.utils._pytree import tree_map

import mtprof_nb as mtp
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.capture.native.recorder_loading import recorder
from mtprof_nb.errors import MtprofWarning

pytestmark = pytest.mark.parametrize("hook", [NATIVE])


class Wrapper(torch.Tensor):
    """Tells its sizes, strides, layout and device in Python, and computes with tensors there."""

    calls: list[str] = []  # noqa: RUF012

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        options = {"dispatch_sizes_strides_policy": "sizes", "dispatch_device": True, "dispatch_layout": True}
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, **options)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(str(func))
        torch.ones(3).add(1)
        args, kwargs = tree_map(lambda one: one.inner if isinstance(one, cls) else one, (args, kwargs or {}))
        return func(*args, **kwargs)


def test_a_subclass_that_tells_its_sizes_in_python_is_not_asked(hook: str) -> None:
    x = Wrapper(torch.ones(2, 3))
    torch.sin(x)
    plain = Wrapper.calls[:]
    Wrapper.calls.clear()
    with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        torch.sin(x)
    assert Wrapper.calls == plain
    assert prof.events()[0].input_shapes == [[2, 3]]


def limited(hook: str, most: int, program: Callable[[], Any], **flags: bool) -> mtp.profile:
    """Record `program`, which runs more than `most` events."""
    prof = mtp.profile(hook=hook, max_events=most, **flags)
    with prof, warnings.catch_warnings():
        program()
        warnings.simplefilter("ignore", MtprofWarning)
        prof.stop()
    return prof


@pytest.mark.parametrize("most", [1, 63, 64, 65, 1000])
def test_max_events_is_exact_on_one_thread_and_the_first_are_kept(hook: str, most: int) -> None:
    x = torch.ones(2)

    def run() -> None:
        for number in range(1500):
            x.neg() if number < most else x.exp()

    trace = limited(hook, most, run, **EVERY_FLAG).trace
    assert names(trace) == ["aten::neg"] * most
    assert trace.dropped == 1500 - most
    assert (trace.allocations.nbytes > 0).sum() == most


def test_max_events_is_exact_on_several_threads(hook: str) -> None:
    x = torch.ones(2)

    def run(count: int) -> None:
        for _ in range(count):
            x.neg()

    def run_threads() -> None:
        threads = [threading.Thread(target=run, args=(count,)) for count in (10, 700, 700, 700, 700)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    trace = limited(hook, 2_500, run_threads).trace
    assert (len(trace), trace.dropped) == (2_500, 310)


def test_as_many_events_as_max_events_are_all_kept(hook: str) -> None:
    x = torch.ones(2)
    with mtp.profile(hook=hook, max_events=640) as prof:
        for _ in range(640):
            x.neg()
    assert (len(prof.trace), prof.trace.dropped) == (640, 0)


def test_options_of_kineto_alone_are_refused_or_named(hook: str) -> None:
    with pytest.raises(mtp.HookError, match="cannot filter activities: use hook='kineto'"):
        mtp.profile(hook=hook, activities=[{mtp.ProfilerActivity.CPU: ["cpu_op"]}]).start()
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with (
        pytest.warns(mtp.MtprofWarning, match="experimental_config has no effect with hook 'native'"),
        mtp.profile(hook=hook, experimental_config=config),
    ):
        pass


def test_storages_that_are_resized_count_one_from_before_too(hook: str) -> None:
    before = torch.empty(0)
    with mtp.profile(hook=hook, profile_memory=True) as prof:
        before.resize_(1000)
        torch.empty(0).resize_(500)
    assert prof.trace.allocations.nbytes.tolist() == [4000, 2000, -2000]


def test_tensors_that_outlive_the_recording_are_freed_later_and_count_as_held(hook: str) -> None:
    with mtp.profile(hook=hook, profile_memory=True) as first:
        kept = torch.ones(1000)
    with mtp.profile(hook=hook, profile_memory=True) as second:
        kept.resize_(2000)
        del kept
    assert first.trace.allocations.total[-1] == 4000
    # The old block goes, which is not of this recording; the new one comes and goes.
    assert second.trace.allocations.nbytes.tolist() == [8000, -8000]


def test_memory_and_stacks_of_all_threads_are_recorded_together(hook: str) -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="before") as pool:
        pool.submit(torch.ones, 2).result()
        with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
            made = pool.submit(lambda: torch.ones(1000).exp()).result()
            del made  # freed on this thread
    trace = prof.trace
    assert {trace.tracks[track].name for track in trace.track} == {"before_0"}
    assert trace.allocations.nbytes.tolist() == [4000, 4000, -4000, -4000]
    exp = rows(trace, "aten::exp")[0]
    assert prof.events()[exp].stack[0].startswith(f"{__file__}:")
    assert trace.memory_after[exp] - trace.memory_before[exp] == 4000


def test_bytes_of_threads_are_the_same_in_lines_events_and_averages(hook: str) -> None:
    def work() -> None:
        kept = [torch.ones(4, 4).mm(torch.ones(4, 4)) for _ in range(50)]
        del kept

    with mtp.profile(hook=hook, with_stack=True, profile_memory=True) as prof:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()

    of_ops = sum(event.self_cpu_memory_usage for event in prof.events())
    assert of_ops == sum(row.memory_bytes or 0 for row in prof.lines()) == 5 * 50 * 3 * 64
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages()) == prof.trace.allocations.total[-1] == 0


def test_a_backward_pass_on_another_thread_is_linked_to_its_forward_pass(hook: str) -> None:
    def train() -> None:
        torch.ones(3, requires_grad=True).exp().sum().backward()

    with ThreadPoolExecutor(1) as pool, mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        pool.submit(train).result()
    trace = prof.trace
    (node,) = rows(trace, "ExpBackward0")
    assert names(trace)[trace.forward[node]] == "aten::exp"


def test_ops_that_a_c_function_calls_have_the_line_of_the_call(hook: str) -> None:
    xs = [torch.ones(2)]
    with mtp.profile(hook=hook, with_stack=True) as prof:
        line = sys._getframe().f_lineno + 1
        list(map(torch.sin, xs))
    assert prof.events()[0].stack[0].startswith(f"{__file__}:{line}:")


def test_code_that_is_gone_keeps_its_lines(hook: str) -> None:
    with mtp.profile(hook=hook, with_stack=True) as prof:
        for number in range(20):
            exec(compile("\n" * number + "torch.ones(1)", f"<gone {number}>", "exec"), {"torch": torch})
    found = [prof.events()[row].stack[0] for row in rows(prof.trace, "aten::ones")]
    assert found == [f"<gone {number}>:{number + 1}:<module>" for number in range(20)]


def test_a_scope_that_ends_on_another_thread_holds_its_time_and_no_ops(hook: str) -> None:
    scope = torch.autograd.profiler.record_function("across")
    with mtp.profile(hook=hook) as prof:
        scope.__enter__()
        thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        torch.ones(1)
    trace = prof.trace
    (across,) = rows(trace, "across")
    assert trace.is_async[across]
    assert (nesting(trace).parent != across).all()


def _step() -> None:
    x = torch.ones(8, 8, requires_grad=True)
    (x @ x).sum().backward()


def _torchs() -> Any:
    activities = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True)


def test_torchs_profiler_and_this_one_are_complete_at_the_same_time(hook: str) -> None:
    _step()
    with mtp.profile(hook=hook, **EVERY_FLAG) as alone:
        _step()
    with mtp.profile(hook=hook, **EVERY_FLAG) as ours, _torchs() as inside:
        _step()
    with _torchs() as around, mtp.profile(hook=hook, **EVERY_FLAG) as within:
        _step()
    with mtp.profile(hook=hook, **EVERY_FLAG) as after:
        _step()
    with _torchs() as theirs_alone:
        _step()
    for prof in (ours, within, after):
        assert names(prof.trace) == names(alone.trace)
        assert prof.trace.allocations.nbytes.tolist() == alone.trace.allocations.nbytes.tolist()
    expected = Counter(event.name for event in theirs_alone.events() if event.name.startswith("aten::"))
    for theirs in (inside, around):
        counted = Counter(event.name for event in theirs.events())
        assert all(counted[name] >= count for name, count in expected.items())


def test_where_frames_cannot_be_read_a_warning_says_so(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder(), "reads_frames", 0)
    prof = mtp.profile(hook=hook, with_stack=True)
    with pytest.warns(MtprofWarning, match="hook 'native' cannot read the stacks of Python 3"):
        prof.start()
    prof.stop()


def test_events_have_the_numbers_that_the_execution_trace_has(hook: str, tmp_path: Path) -> None:
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "trace.json"))
    with mtp.profile(hook=hook, execution_trace_observer=observer) as prof:
        torch.ones(3).exp()
    observer.unregister_callback()
    nodes = json.loads((tmp_path / "trace.json").read_text())["nodes"]
    theirs = {
        attribute["value"]: node["name"]
        for node in nodes
        for attribute in node.get("attrs", [])
        if attribute["name"] == "rf_id"
    }
    numbers = prof.trace.record_function.tolist()
    assert [theirs[number] for number in numbers] == names(prof.trace)
