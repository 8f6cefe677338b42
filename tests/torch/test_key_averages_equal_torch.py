"""Our averages of a recording beside torch's own of the very same Kineto result."""

import inspect
import itertools
import threading
from types import SimpleNamespace

import pytest

import mtprof_nb as mtp
from mtprof_nb.capture.kineto import kineto_hook as kineto

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.autograd import profiler as torch_profiler  # noqa: E402
from torch.autograd import profiler_util  # noqa: E402

#: All but stacks and modules, for which torch records calls of Python functions.
ALL_FLAGS = {
    "record_shapes": True,
    "profile_memory": True,
    "with_flops": True,
}
FLAGS = {
    "no flags": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "all flags": ALL_FLAGS,
}

EXACTLY_EQUAL = (
    *("count", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage"),
    *("device_time_total", "self_device_time_total", "scope", "is_async", "is_remote", "is_legacy", "node_id"),
    "use_device",
)


def mlp_with_sgd():
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
    return train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.randn(5, 6))


def mlp_with_adam():
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 3))
    return train(model, torch.optim.Adam(model.parameters(), foreach=True), torch.randn(5, 6))


def convolutional_net():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(3)
    )
    x = torch.randn(2, 1, 8, 8)
    model(x)
    return train(model, torch.optim.SGD(model.parameters(), lr=0.1), x)


def transformer_encoder():
    layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    model = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
    return train(model, torch.optim.Adam(model.parameters()), torch.randn(2, 5, 8))


def train(model, optimizer, x):
    def program(prof):
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            prof.step()

    return program


def user_scopes_and_two_threads():
    weight = torch.randn(8, 8, requires_grad=True)

    def work(label):
        for _ in range(5):
            with torch.profiler.record_function(label), torch.profiler.record_function("inner"):
                (weight @ weight).relu().sum().backward()

    def program(prof):
        other = threading.Thread(target=work, args=("in the worker",))
        with mtp.record_function("everything"):
            other.start()
            work("in the main thread")
            other.join()

    return program


def nested_namesakes():
    def program(prof):
        with mtp.record_function("twice"), mtp.record_function("twice"), mtp.record_function("twice"):
            torch.ones(64).sum()
        with mtp.record_function("twice"):
            with mtp.record_function("twice"):
                torch.ones(64)
            with mtp.record_function("twice"):
                torch.ones(64)
        torch.ones(3, requires_grad=True).is_leaf  # noqa: B018

    return program


PROGRAMS = [
    mlp_with_sgd,
    mlp_with_adam,
    convolutional_net,
    transformer_encoder,
    user_scopes_and_two_threads,
    nested_namesakes,
]


@pytest.fixture
def record(monkeypatch):
    """Run a program once under our profiler, and give its Kineto result to torch's parser as well."""
    kineto_results = []

    def build_trace(results, *args):
        kineto_results.append(results)
        return original(results, *args)

    original = kineto.exported_trace
    monkeypatch.setattr(kineto, "exported_trace", build_trace)

    def run(make_program, **flags):
        program = make_program()
        with mtp.profile(hook="kineto", **flags) as prof:
            program(prof)
        return SimpleNamespace(ours=prof, theirs=torch_events(kineto_results.pop(), flags))

    return run


def torch_events(kineto_result, flags):
    """torch's own events of a result, but for calls of Python functions."""
    options = {flag: flags.get(flag, False) for flag in ("profile_memory", "with_flops")}
    parsed = torch_profiler.profile(use_kineto=True, **options)._parse_kineto_results(kineto_result)
    with_ops = {event.thread for event in parsed if not event.is_python_function}
    shown = [event for event in parsed if event.thread in with_ops and not event.is_python_function]
    events = profiler_util.EventList(shown, **options)
    events._build_tree()
    return events


def identity(row):
    device_type = getattr(row.device_type, "name", row.device_type)
    return row.key, device_type, row.is_user_annotation, str(row.input_shapes), row.overload_name, tuple(row.stack)


def never_negative_self_times(events, *, by_shape):
    """torch's self times by row, with no event's below zero: the one thing in which we differ."""
    totals = {}
    for event in events:
        key = event.key, event.is_user_annotation, str(event.input_shapes if by_shape else "")
        totals[key] = totals.get(key, 0.0) + max(event.self_cpu_time_total, 0.0)
    return totals


def torch_averages(events, by_shape, *, with_python):
    """torch's rows of all events, or of all but Python's, which is what torch 2.15 leaves out unless told not to."""
    takes_python = "include_python_functions" in inspect.signature(events.key_averages).parameters
    if takes_python:
        return events.key_averages(by_shape, include_python_functions=with_python)
    chosen = profiler_util.EventList([event for event in events if with_python or not event.is_python_function])
    chosen._tree_built = True
    return chosen.key_averages(by_shape)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_row_is_torchs(record, program, flags):
    run = record(program, **flags)
    for by_shape, with_python in itertools.product((False, True), repeat=2):
        ours = run.ours.key_averages(by_shape, include_python_functions=with_python)
        theirs = torch_averages(run.theirs, by_shape, with_python=with_python)
        self_us = never_negative_self_times(run.theirs, by_shape=by_shape)

        assert [identity(row) for row in ours] == [identity(row) for row in theirs]
        for mine, other in zip(ours, theirs, strict=True):
            own = self_us[mine.key, mine.is_user_annotation, str(mine.input_shapes)]
            assert mine.cpu_time_total == pytest.approx(other.cpu_time_total, abs=0.01), mine.key
            assert mine.self_cpu_time_total == pytest.approx(own, abs=0.01), mine.key
            for attribute in EXACTLY_EQUAL:
                assert getattr(mine, attribute) == getattr(other, attribute), f"{mine.key}: {attribute}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_operations_are_torchs_wherever_torch_counts_any(record, program):
    run = record(program, with_flops=True)
    ours = {row.key: row.flops for row in run.ours.key_averages()}
    theirs = {row.key: row.flops for row in run.theirs.key_averages() if row.flops}

    assert {key: ours[key] for key in theirs} == theirs


def test_operations_of_sums_and_products_are_counted_and_those_of_a_convolution_once(record):
    def program(_prof):
        x, conv = torch.ones(8, 8), nn.Conv2d(2, 3, 3)
        _ = x * x, x + x, x @ x, torch.addmm(x, x, x), conv(torch.ones(1, 2, 8, 8))

    run = record(lambda: program, with_flops=True)
    assert {row.key: row.flops for row in run.ours.key_averages() if row.flops} == {
        "aten::mul": 64,
        "aten::add": 64,
        "aten::mm": 1024,
        "aten::addmm": 1024,
        "aten::conv2d": 2 * 2 * 3 * 3 * 3 * 6 * 6,
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_stacks_torchs_self_times_are_ours_as_they_are(record, program):
    run = record(program)
    theirs = run.theirs.key_averages()

    assert [row.self_cpu_time_total for row in run.ours.key_averages()] == pytest.approx(
        [row.self_cpu_time_total for row in theirs], abs=0.01
    )


def test_totals_are_torchs(record):
    run = record(transformer_encoder, profile_memory=True)
    ours, theirs = run.ours.key_averages(), run.theirs.key_averages()

    assert ours.self_cpu_time_total == pytest.approx(theirs.self_cpu_time_total, abs=0.01)
    assert run.ours.events().self_cpu_time_total == pytest.approx(run.theirs.self_cpu_time_total, abs=0.01)
    mine, other = ours.total_average(), theirs.total_average()
    assert (mine.key, mine.count) == (other.key, other.count)
    assert mine.cpu_time_total == pytest.approx(other.cpu_time_total, abs=0.01)
    assert mine.cpu_memory_usage == other.cpu_memory_usage
    assert mine.self_cpu_memory_usage == other.self_cpu_memory_usage


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sort_by": "self_cpu_time_total", "row_limit": 7},
        {"sort_by": "cpu_time_total", "row_limit": -1, "time_unit": "ms", "header": "a header"},
        {"top_level_events_only": True, "max_name_column_width": 20},
        {"sort_by": "cpu_time", "max_name_column_width": None, "max_shapes_column_width": 12},
    ],
)
@pytest.mark.parametrize("by_shape", [False, True], ids=["by name", "by shape"])
def test_the_table_is_torchs_but_for_its_last_line(record, options, by_shape):
    run = record(mlp_with_sgd, record_shapes=True, profile_memory=True, with_flops=True)
    ours = run.ours.key_averages(by_shape)
    theirs = run.theirs.key_averages(by_shape)
    for mine, other in zip(ours, theirs, strict=True):
        # torch adds floats one by one, and leaves ties in the order of the list: equal sums print the same digits.
        other.cpu_time_total, other.self_cpu_time_total = mine.cpu_time_total, mine.self_cpu_time_total
        other.flops = mine.flops

    theirs.sort(key=lambda row: row.key)
    if "sort_by" not in options:
        ours.sort(key=lambda row: row.key)

    *lines, last = ours.table(**options).splitlines()

    assert lines == theirs.table(**options).splitlines()
    assert last.startswith("Total: ")
    assert last.endswith(f"Count: {sum(row.count for row in theirs)}")


def test_a_row_has_every_attribute_of_torchs(record):
    run = record(mlp_with_sgd)
    other = run.theirs.key_averages()[0]
    wanted = [name for name in dir(other) if not name.startswith("_")]

    with pytest.warns(FutureWarning, match="cuda_time"):
        missing = [name for name in wanted if not hasattr(run.ours.key_averages()[0], name)]

    assert missing == []
