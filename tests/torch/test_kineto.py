"""Hook `kineto`: phases, links to the forward pass, shapes, memory, modules, operations, limits."""

import json
import subprocess
import sys
import textwrap
import time
import warnings

import pytest
from recorded_rows import names, rows

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import kineto_hook as kineto
from mtprof_nb.model.trace import PHASES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("kineto_alone")
from torch import nn  # noqa: E402


def test_phases_are_told_apart():
    model, x = nn.Linear(3, 3), torch.rand(2, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with mtp.profile() as prof:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.ones_like(x, dtype=torch.int32).sum()
    trace = prof.trace
    phase = {name: {PHASES[trace.phase[row]] for row in rows(trace, name)} for name in names(trace)}
    assert phase["aten::addmm"] == {"forward"}
    assert phase["AddmmBackward0"] == {"backward"}
    assert phase["torch::autograd::AccumulateGrad"] == {"backward"}
    assert [PHASES[trace.phase[row]] for row in rows(trace, "aten::ones_like")] == ["backward", "other"]
    assert phase["aten::add_"] == {"optimizer"}
    assert phase["Optimizer.step#SGD.step"] == {"optimizer"}


def test_links_to_the_forward_pass_are_those_that_kineto_draws(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    x = torch.rand(2, 4)

    def keep(result_of_exit):
        def leave(profiler, *error):
            done = result_of_exit(profiler, *error)
            profiler.kineto_results.save(str(tmp_path / "kineto.json"))
            return done

        return leave

    low = torch.autograd.profiler.profile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(low, "__exit__", keep(low.__exit__))
        with mtp.profile() as prof:
            (model(x) * model(x)).sum().backward()
    raw = json.loads((tmp_path / "kineto.json").read_text())
    flows = [event for event in raw["traceEvents"] if event.get("cat") == "fwdbwd"]
    base = int(raw.get("baseTimeNanoseconds", 0))
    begins = {event["id"]: round(event["ts"] * 1000) + base for event in flows if event["ph"] == "s"}
    ends = {event["id"]: round(event["ts"] * 1000) + base for event in flows if event["ph"] == "f"}
    theirs = {(begins[one], ends[one]) for one in begins}
    trace = prof.trace
    ours = {
        (int(trace.start_ns[trace.forward[row]]), int(trace.start_ns[row]))
        for row, name in enumerate(names(trace))
        if trace.forward[row] >= 0 and name.endswith("Backward0") and not name.startswith("autograd::engine::")
    }
    assert len(theirs) == 12
    assert ours == theirs


def test_shapes_of_tensors_tensor_lists_and_keywords():
    a, b = torch.rand(2, 3), torch.rand(3)
    with mtp.profile(record_shapes=True) as prof:
        torch.cat([a, a])
        torch.add(input=a, other=b)
    trace = prof.trace
    shape = {name: trace.shapes[trace.shape[rows(trace, name)[0]]] for name in ("aten::cat", "aten::add")}
    assert shape["aten::cat"] == (((2, 3), (2, 3)), ())
    assert shape["aten::add"] == ((2, 3), (3,), ())


def test_memory_is_the_allocators_own_count():
    with mtp.profile(profile_memory=True) as prof:
        kept = torch.empty(1000, dtype=torch.uint8)
        gone = torch.empty(500, dtype=torch.uint8)
        del gone
        torch.zeros(100, dtype=torch.uint8)
    trace = prof.trace
    assert trace.allocations.nbytes.tolist() == [1000, 500, -500, 100, -100]
    assert len(kept) == 1000
    first = trace.allocations.total[0] - 1000
    around = [
        (int(trace.memory_before[row] - first), int(trace.memory_after[row] - first))
        for row in rows(trace, "aten::empty")[:2]
    ]
    assert around == [(0, 1000), (1000, 1500)]
    owners = [names(trace)[event] if event >= 0 else None for event in trace.allocations.event]
    assert owners == ["aten::empty", "aten::empty", None, "aten::empty", None]


def test_modules_are_named_by_their_path_in_forward_and_backward():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

        def forward(self, x):
            return self.body(x) + 1

    model, x = Net(), torch.rand(2, 3)
    with mtp.profile(with_modules=True) as prof:
        model(x).sum().backward()
    trace = prof.trace
    module = {name: {trace.modules[trace.module[row]] for row in rows(trace, name)} for name in set(names(trace))}
    assert module["aten::addmm"] == {"Net.body.0"}
    assert module["aten::relu"] == {"Net.body.1"}
    assert module["AddmmBackward0"] == {"Net.body.0"}
    assert module["AddBackward0"] == {"Net"}
    assert trace.stack is None


def test_operations_are_counted_by_torchs_own_formulas():
    from torch.utils.flop_counter import FlopCounterMode

    conv, linear = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(8, 5)
    image, x = torch.rand(2, 3, 8, 8), torch.rand(6, 8)

    def work():
        conv(image).sum().backward()
        linear(x).sum().backward()
        torch.bmm(torch.rand(2, 3, 4), torch.rand(2, 4, 5))

    with FlopCounterMode(display=False) as counter:
        work()
    with mtp.profile(with_flops=True) as prof:
        work()
    flops = prof.trace.flops
    assert int(flops[flops > 0].sum()) == counter.get_total_flops()
    assert prof.trace.shape is None


def test_off_flags_leave_their_columns_out():
    with mtp.profile() as prof:
        torch.ones(2) + 1
    optional = ("shape", "stack", "memory_before", "memory_after", "flops", "module", "allocations", "stacks")
    assert {name: getattr(prof.trace, name) for name in optional} == dict.fromkeys(optional)
    assert "__add__" not in torch.Tensor.__dict__


def test_a_compiled_function_keeps_its_graph_and_is_not_compiled_again():
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("eager")

    @torch.compile(backend=counter)
    def compiled(x, y):
        z = x + y
        z = z * 2 - 1
        return (z @ y.T)[0]

    x, y = torch.rand(3, 3), torch.rand(3, 3)
    with mtp.profile(with_stack=True, with_modules=True, record_shapes=True) as prof:
        first = compiled(x, y)
    second = compiled(x, y)
    with mtp.profile(with_stack=True):
        third = compiled(x, y)
    assert counter.frame_count == 1
    assert "aten::matmul" in names(prof.trace)
    assert torch.equal(first, second)
    assert torch.equal(first, third)


def test_a_tensor_subclass_is_handed_the_functions_it_knows():
    seen = []

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    expected = [torch.Tensor.__add__, torch.Tensor.__rmul__, torch.Tensor.__getitem__]
    x = torch.ones(2).as_subclass(Loud)
    with mtp.profile(with_stack=True):
        seen.clear()
        _ = x + 1, 2 * x, x[0]
        found = list(seen)
    assert [function for function in found if function in expected] == expected


@pytest.mark.parametrize("flags", [{}, {"with_stack": True, "record_shapes": True, "with_modules": True}])
def test_a_recording_keeps_at_most_250_bytes_an_event(flags):
    model, x = nn.Sequential(*[nn.Linear(8, 8) for _ in range(4)]), torch.rand(2, 8)
    with mtp.profile(**flags) as prof:
        for _ in range(20):
            model(x).sum().backward()
    assert prof.trace.nbytes / len(prof.trace) <= 250


def test_recording_stops_at_max_events_and_the_program_goes_on():
    prof = mtp.profile(max_events=100)

    @prof
    def work(x, one):
        for _ in range(150):
            x = torch.add(x, one)
        return x

    with pytest.warns(mtp.MtprofWarning, match="50 events are missing: max_events=100 was reached") as warned:
        result = work(torch.ones(2), torch.ones(2))
    assert len(warned) == 1
    assert result.tolist() == [151.0, 151.0]
    assert (len(prof.trace), prof.trace.dropped, prof.trace.dropped_exactly) == (100, 50, True)


def test_a_long_recording_is_ended_while_it_runs():
    prof = mtp.profile(max_events=20_000)

    @prof
    def work(x):
        hook = prof._session.window.hooks["kineto"]
        for _ in range(5_000_000):
            torch.add(x, x)
            if hook.profiler is None:
                return [torch.add(x, x) for _ in range(1000)]
        return []

    with pytest.warns(mtp.MtprofWarning, match="at least .* missing: max_events=20,000 was reached"):
        after = work(torch.ones(2))
    assert len(after) == 1000
    assert len(prof.trace) == 20_000
    assert not prof.trace.dropped_exactly
    assert prof.trace.end_ns.max() <= prof.trace.ended_ns < prof.trace.unrecorded[0].ended_ns


def test_memory_of_the_programs_own_is_not_taken_for_events():
    x = torch.ones(4)
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mtp.profile(max_events=20_000) as prof:
            for number in range(100):
                with mtp.record_function(f"scope {number}"), torch.profiler.record_function("torch's"):
                    torch.sin(x)
                    kept += [bytearray(900) for _ in range(1000)]
                    time.sleep(0.001)
    found = [event.name for event in prof.events()]

    assert found.count("aten::sin") == 100
    assert [name for name in found if name.startswith("scope")] == [f"scope {number}" for number in range(100)]
    assert (prof.trace.dropped, prof.trace.dropped_exactly) == (0, True)


def test_reading_ends_at_its_timeout_and_says_what_is_missing():
    prof = mtp.profile(post_processing_timeout_s=0)

    @prof
    def work():
        return torch.ones(1).neg()

    with pytest.warns(mtp.MtprofWarning, match="the last 4 events are missing"):
        work()
    assert (len(prof.trace), prof.trace.dropped) == (0, 4)
    with mtp.profile(post_processing_timeout_s=60) as whole:
        torch.ones(1).neg()
    assert (len(whole.trace), whole.trace.dropped) == (4, 0)
    with pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"):
        mtp.profile(post_processing_timeout_s=-1)


NPU = """
import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("npu")
library = torch.library.Library("_", "IMPL")
payload = {}


def unwrap(value):
    is_there = isinstance(value, torch.Tensor) and value.device.type == "npu"
    return payload[value.untyped_storage()._cdata] if is_there else value


def wrap(value):
    if not isinstance(value, torch.Tensor):
        return value
    made = torch._C._acc.create_empty_tensor(value.shape, value.dtype)
    payload[made.untyped_storage()._cdata] = value
    return made


def fallback(op, *args, **kwargs):
    on_cpu = {key: "cpu" if key == "device" else unwrap(value) for key, value in kwargs.items()}
    result = op(*map(unwrap, args), **on_cpu)
    return kwargs.get("out", wrap(result))


library.fallback(fallback, "PrivateUse1")
x, y = wrap(torch.ones(2, 2)), wrap(torch.ones(2, 2))

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import kineto_hook as kineto

with mtp.profile(hook="kineto", record_shapes=True, activities=["cpu"]) as prof:
    torch.add(x, y)
    torch.mul(torch.ones(2), 3)
trace = prof.trace
found = {(trace.names[n], trace.devices[d]) for n, d in zip(trace.name, trace.device)}
assert ("aten::add", "NPU") in found, found
assert ("aten::mul", "CPU") in found, found
assert ("aten::mul", "NPU") not in found, found
print("recorded on NPU")
"""


def test_ops_on_an_npu_device_are_npu_ops_when_shapes_are_recorded():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(NPU)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "recorded on NPU", done.stderr


def test_a_torch_that_is_too_old_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion("2.9.1"))
    with pytest.raises(mtp.HookError, match=r"needs PyTorch 2.12, and this is 2.9.1: upgrade, build the native"):
        mtp.profile(hook="kineto").start()


def test_activities_of_which_kineto_can_record_none_are_refused(monkeypatch):
    prof = mtp.profile(hook="kineto")
    monkeypatch.setattr(kineto, "available", lambda names: frozenset())
    with pytest.raises(mtp.HookError, match="can record none of CPU here: add CPU"):
        prof.start()
