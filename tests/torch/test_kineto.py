"""Hook `kineto`: phases, links to the forward pass, shapes, memory, modules, operations, stacks, limits."""

import json
import threading

import numpy as np
import pytest
from recorded_rows import names, rows

import mtprof_nb as mtp
from mtprof_nb.capture.clock import Clock
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto import exported_trace as exporting
from mtprof_nb.capture.kineto import kineto_hook as kineto
from mtprof_nb.capture.kineto.exported_trace import Noted, exported_trace
from mtprof_nb.model.trace import PHASES
from mtprof_nb.reading import read

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


def test_links_to_the_forward_pass_are_those_that_kineto_draws(monkeypatch):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    x, texts = torch.rand(2, 4), []

    def read_and_keep(path, **options):
        texts.append(path.read_text())
        return read(path, **options)

    monkeypatch.setattr(exporting, "read", read_and_keep)
    with mtp.profile() as prof:
        (model(x) * model(x)).sum().backward()
    flows = [event for event in json.loads(texts[0])["traceEvents"] if event.get("cat") == "fwdbwd"]
    begins, ends = ({event["id"]: event["ts"] for event in flows if event["ph"] == ph} for ph in "sf")
    theirs = sorted((begins[one], ends[one]) for one in begins)
    trace = prof.trace
    ours = sorted(
        (int(trace.start_ns[trace.forward[row]]), int(trace.start_ns[row]))
        for row, name in enumerate(names(trace))
        if trace.forward[row] >= 0 and name.endswith("Backward0") and not name.startswith("autograd::engine::")
    )
    assert len(theirs) == len(ours) == 12
    # Both clocks differ by an offset, and by what one was corrected meanwhile.
    offsets = [
        ns - 1_000 * us for pair, other in zip(ours, theirs, strict=True) for ns, us in zip(pair, other, strict=True)
    ]
    assert max(offsets) - min(offsets) < 1_000


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


def test_modules_are_named_by_their_classes_in_forward_and_backward():
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
    assert module["aten::addmm"] == {"Net.Sequential.Linear"}
    assert module["aten::relu"] == {"Net.Sequential.ReLU"}
    assert module["AddmmBackward0"] == {"Net.Sequential.Linear"}
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


def test_activities_of_which_kineto_can_record_none_are_refused(monkeypatch):
    prof = mtp.profile(hook="kineto")
    monkeypatch.setattr(kineto, "available", lambda names: frozenset())
    with pytest.raises(mtp.HookError, match="can record none of CPU here: add CPU"):
        prof.start()


def called(x):
    return x.sin()


def test_stacks_have_the_functions_that_ran_with_their_first_lines_and_none_of_the_profiler():
    with mtp.profile(with_stack=True) as prof, mtp.record_function("scope"):
        called(torch.ones(2))
    trace = prof.trace
    stack = [str(frame) for frame in trace.stacks.stack(trace.stack[rows(trace, "aten::sin")[0]])]
    function = called.__code__
    assert stack[0].endswith(f"test_kineto.py:{function.co_firstlineno}:called")
    assert not [frame for frame in stack if "mtprof_nb/" in frame or "torch/profiler" in frame]
    calls = [name for name in names(trace) if "(" in name]
    assert [name for name in calls if name.endswith(": called")]
    assert not [name for name in calls if name.startswith(("mtprof_nb/", "contextlib.py", "signal.py"))]
    assert "Lines in stacks are those of `def`: the file has no others." in trace.notes


def test_only_the_thread_that_profiles_and_its_backward_pass_are_recorded():
    w = torch.ones(2, requires_grad=True)
    with mtp.profile() as prof:
        thread = threading.Thread(target=lambda: torch.erf(w))
        thread.start()
        thread.join()
        torch.sin(w).sum().backward()
    found = names(prof.trace)
    assert "aten::sin" in found
    assert "SinBackward0" in found
    assert "aten::erf" not in found


def test_times_follow_a_wall_clock_that_was_set_meanwhile():
    class Readings:
        now_ns = iter((1_000, 2_000)).__next__
        wall_ahead_ns = iter((50, 1_050)).__next__

    noted = Noted(Readings())
    noted.note()
    noted.note()
    # The wall clock went from 1,050 to 3,050 while 1,000 ns passed.
    assert noted.of_session(np.array([1_050, 2_050, 3_050])).tolist() == [1_000, 1_500, 2_000]
    assert not noted.has_turned


def test_a_wall_clock_that_was_set_back_is_told():
    class Readings:
        now_ns = iter((1_000, 2_000)).__next__
        wall_ahead_ns = iter((50, -1_050)).__next__

    noted = Noted(Readings())
    noted.note()
    noted.note()
    assert noted.has_turned


def test_a_file_that_cannot_be_written_is_told_with_the_remedy(monkeypatch):
    class Results:
        def save(self, path):
            """Write nothing, as Kineto does on a full disk."""

    with pytest.raises(mtp.HookError, match=r"the recording is lost, .* free space there"):
        exported_trace(Results(), torch, Request(), Noted(Clock()))
