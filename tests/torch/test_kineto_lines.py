"""Hook `kineto` with stacks: exact lines of ops and scopes, and nothing of the profiler's own."""

import gc
import inspect
import threading
from pathlib import Path

import pytest
from recorded_rows import names, rows

import mtprof_nb as mtp
from mtprof_nb.capture.kineto.tensor_operators import TensorOperators
from mtprof_nb.model.trace import PHASES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("kineto_alone")

HERE = __file__


def stack(trace, row):
    return [str(frame) for frame in trace.stacks.stack(trace.stack[row])]


def line_of(function, text):
    source, first = inspect.getsourcelines(function)
    return next(first + offset for offset, line in enumerate(source) if text in line)


def arithmetic(a, b):
    c = a + b
    c = c * 2
    c -= a
    c = a @ c.T
    c[0] = -b[1]
    d = c > 0
    return torch.where(
        d,
        c.sin(),
        b,
    )


@pytest.mark.parametrize(
    ("op", "text"),
    [
        ("aten::add", "c = a + b"),
        ("aten::mul", "c = c * 2"),
        ("aten::sub_", "c -= a"),
        ("aten::matmul", "c = a @ c.T"),
        ("aten::numpy_T", "c = a @ c.T"),
        ("aten::neg", "c[0] = -b[1]"),
        ("aten::gt", "d = c > 0"),
        ("aten::sin", "c.sin(),"),
        ("aten::where", "return torch.where("),
    ],
)
def test_every_op_has_the_exact_line_that_called_it(op, text):
    a, b = torch.rand(3, 3), torch.rand(3, 3)
    with mtp.profile(with_stack=True) as prof:
        arithmetic(a, b)
    found = rows(prof.trace, op)
    assert found, names(prof.trace)
    frames = stack(prof.trace, found[0])
    assert frames[0] == f"{HERE}:{line_of(arithmetic, text)}:arithmetic"
    assert frames[1].startswith(f"{HERE}:")
    assert frames[1].endswith(":test_every_op_has_the_exact_line_that_called_it")


def test_no_frame_of_the_profiler_is_in_any_stack_and_no_call_of_its_is_an_event():
    with mtp.profile(with_stack=True) as prof:
        arithmetic(torch.rand(3, 3), torch.rand(3, 3))
    files = {frame.file for frame in prof.trace.stacks.frames}
    assert not [file for file in files if "mtprof_nb/capture" in file or "mtprof_nb/profiler" in file]
    assert not [name for name in names(prof.trace) if name.startswith("mtprof_nb/")]


def test_a_scope_has_the_line_that_opened_it():
    with mtp.profile(with_stack=True) as prof:
        with mtp.record_function("ours"):
            pass
        with torch.profiler.record_function("torch's"):
            pass
    here = test_a_scope_has_the_line_that_opened_it
    for name, text in (("ours", 'record_function("ours")'), ("torch's", 'record_function("torch\'s")')):
        (row,) = rows(prof.trace, name)
        assert stack(prof.trace, row)[0] == f"{HERE}:{line_of(here, text)}:{here.__name__}"


def test_a_backward_op_has_the_stack_of_the_forward_op_and_says_so():
    w = torch.rand(3, 3, requires_grad=True)
    x = torch.rand(3, 3)

    def forward():
        y = torch.mm(x, w)
        return (y * y).sum()

    with mtp.profile(with_stack=True) as prof:
        forward().backward()
    trace = prof.trace
    (node,) = rows(trace, "MmBackward0")
    inner = [row for row in rows(trace, "aten::mm") if PHASES[trace.phase[row]] == "backward"]
    for row in (node, *inner):
        assert trace.stack_is_forward[row]
        assert stack(trace, row)[0] == f"{HERE}:{line_of(forward, 'torch.mm')}:forward"
        assert names(trace)[trace.forward[row]] == "aten::mm"
    forward_ops = [row for row in rows(trace, "aten::mm") if row not in inner]
    assert not any(trace.stack_is_forward[row] for row in forward_ops)


def test_a_thread_that_starts_meanwhile_has_exact_lines_too():
    x = torch.rand(3, 3, requires_grad=True)

    def work():
        y = x + x
        (y @ x).sum().backward()

    with mtp.profile(with_stack=True) as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    trace = prof.trace
    for op, text in (("aten::add", "y = x + x"), ("aten::matmul", "(y @ x)"), ("MmBackward0", "(y @ x)")):
        assert stack(trace, rows(trace, op)[0]) == [f"{HERE}:{line_of(work, text)}:work"]
    assert threading.getprofile() is None


def test_code_that_is_gone_has_no_name_rather_than_garbage():
    with mtp.profile(with_stack=True) as prof:
        for _ in range(20):
            exec(compile("import torch\ntorch.ones(1)\n", "<gone>", "exec"), {})
        [object() for _ in range(10_000)]
    assert all(frame.function == "?" or frame.function.isprintable() for frame in prof.trace.stacks.frames)
    assert all(name.isprintable() for name in prof.trace.names)


def test_a_function_that_is_gone_counts_for_the_line_that_called_it_and_for_no_other_file():
    def call():
        made = {}
        exec(compile("def work(x):\n    return x.sin()\n", "gone_source.py", "exec"), made)
        return made["work"](torch.ones(2))

    with mtp.profile(with_stack=True) as prof:
        call()
        [f"{number}/some.py" for number in range(10_000)]
    called = line_of(call, 'made["work"]')
    assert stack(prof.trace, rows(prof.trace, "aten::sin")[0])[0] == f"{HERE}:{called}:call"
    assert {frame.file for frame in prof.trace.stacks.frames if not Path(frame.file).is_file()} <= {"<string>"}


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.mul(x, 2)


def test_python_inside_the_backward_pass_keeps_its_own_lines():
    x = torch.rand(3, requires_grad=True)
    with mtp.profile(with_stack=True) as prof:
        Square.apply(x).sum().backward()
    trace = prof.trace
    in_backward = [row for row in rows(trace, "aten::mul") if PHASES[trace.phase[row]] == "backward"]
    expected = f"{HERE}:{line_of(Square.backward, 'return grad * torch.mul(x, 2)')}:backward"
    assert [stack(trace, row)[0] for row in in_backward] == [expected, expected]
    assert not any(trace.stack_is_forward[row] for row in in_backward)


@pytest.fixture
def no_collections():
    """No garbage collection, which would call functions that the test tools have registered with it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
def test_with_stacks_the_profilers_own_calls_are_not_shown():
    x = torch.ones(2)

    def decorated(y):
        return sorted(torch.exp(y).tolist())

    def numbers():
        yield from (torch.cos(x) for _ in range(2))

    with mtp.profile(with_stack=True) as prof:
        with mtp.record_function("scope"):
            torch.sin(x)
        mtp.record_function("decorated")(decorated)(x)
        for _ in mtp.steps(numbers()):
            mtp.step()
    calls = [event for event in prof.events() if event.kind == "python"]
    (own,) = (call for call in calls if call.name.endswith(": test_with_stacks_the_profilers_own_calls_are_not_shown"))
    inside = [call.name for call in calls if call.start_ns > own.start_ns]
    functions = {name.partition(": ")[2] or name.split()[2].rstrip(">") for name in inside}

    assert functions <= {"decorated", "numbers", "<genexpr>", "sorted", "sin", "exp", "cos", "tolist"}
    assert {"decorated", "numbers", "<genexpr>", "sorted"} <= functions


def test_operators_mean_the_same_after_a_hundred_recordings():
    x = torch.rand(3, 3)

    def row():
        return x[1]

    for _ in range(100):
        operators = TensorOperators(torch)
        operators.install()
        inside = [row().shape for _ in range(20)]
        operators.remove()
        assert {*inside, row().shape} == {(3,)}
    with pytest.raises(IndexError) as raised:
        x[7]
    assert [entry.path for entry in raised.traceback] == [Path(__file__)]
