"""Our averages of recordings with devices beside torch's own, of the same events, shaped as Kineto gives them."""

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kineto_made_by_hand import Event

from mtprof_nb.model.trace import ENGINE_PREFIX, PHASES, Trace
from mtprof_nb.reading import read
from mtprof_nb.tables.averages import key_averages
from mtprof_nb.tables.events import Events
from tests.reading.chrome_files import written

torch = pytest.importorskip("torch")
from torch.autograd import DeviceType  # noqa: E402
from torch.autograd import profiler as torch_profiler  # noqa: E402
from torch.autograd.profiler_util import EventList  # noqa: E402

TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
#: What Kineto's events answer where they have nothing to say.
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("shapes", "concrete_inputs", "stack", "dtypes"), ()),
    **dict.fromkeys(("structured_input_shapes", "structured_input_strides"), ()),
    **dict.fromkeys(("overload_name", "metadata_json"), ""),
    "extra_meta": {},
    **dict.fromkeys(("is_async", "is_user_annotation", "is_python_function", "is_hidden_event"), False),
    **dict.fromkeys(("cuda_elapsed_us", "privateuse1_elapsed_us", "sequence_nr", "python_id"), -1),
}
MAIN, ENGINE = 1, 2


def on_host(name: str, start_us: int, end_us: int, number: int, **facts: Any) -> Event:
    """An op with the correlation id `number`, or what `facts` say."""
    thread = facts.get("start_thread_id", MAIN)
    given = {
        **NOTHING,
        "name": name,
        "start_ns": start_us * 1_000,
        "duration_ns": (end_us - start_us) * 1_000,
        "end_ns": end_us * 1_000,
        "correlation_id": number,
        "activity_type": "cpu_op",
        "device_type": DeviceType.CPU,
        "start_thread_id": thread,
        "end_thread_id": thread,
        "device_resource_id": 100 * thread,
        "device_index": 4321,
    }
    return Event(**{**given, **facts})


def scope(name: str, start_us: int, end_us: int, number: int, **facts: Any) -> Event:
    return on_host(
        name, start_us, end_us, number, scope=7, activity_type="user_annotation", is_user_annotation=True, **facts
    )


def launch(start_us: int, number: int, op: int, name: str = "cudaLaunchKernel", **facts: Any) -> Event:
    return on_host(
        name, start_us, start_us + 3, number, linked_correlation_id=op, activity_type="cuda_runtime", **facts
    )


def on_device(name: str, start_us: int, end_us: int, number: int, op: int, **facts: Any) -> Event:
    given = {"activity_type": "kernel", "device_type": DeviceType.CUDA, "device_index": 1, "device_resource_id": 7}
    return on_host(name, start_us, end_us, number, **{"linked_correlation_id": op, **given, **facts})


def training_step() -> list[Event]:
    """A step with a copy, a forward pass, the root gradient, a backward pass on the engine's thread and a collective.

    Kernels run late, and long beyond the ops that launched them.
    """
    node = {"start_thread_id": ENGINE, "fwd_thread_id": MAIN, "sequence_nr": 0}
    engine = {"start_thread_id": ENGINE}
    return [
        scope("ProfilerStep#3", 0, 1_000, 1),
        on_device("ProfilerStep#3", 30, 2_000, 0, 0, activity_type="gpu_user_annotation", is_user_annotation=True),
        on_host("aten::to", 5, 30, 2),
        on_host("aten::copy_", 8, 28, 3),
        launch(10, 70, 3, "cudaMemcpyAsync"),
        on_device("Memcpy HtoD (Pageable -> Device)", 15, 27, 70, 3, activity_type="gpu_memcpy"),
        on_host("aten::linear", 40, 80, 4, sequence_nr=0),
        on_host("aten::addmm", 45, 75, 5, sequence_nr=0),
        launch(50, 71, 5),
        on_device("gemm", 90, 700, 71, 5),
        launch(60, 72, 5),
        on_device("bias", 700, 740, 72, 5),
        # The only child of a namesake.
        on_host("aten::sum", 100, 130, 6, sequence_nr=1),
        on_host("aten::sum", 102, 128, 7, sequence_nr=1),
        launch(110, 73, 7),
        on_device("reduce", 740, 760, 73, 7),
        on_host("aten::ones_like", 150, 170, 8, sequence_nr=2),
        launch(155, 74, 8),
        on_device("fill", 760, 765, 74, 8),
        # Calls of the runtime between the root gradient and the first node.
        launch(175, 75, 0, "cudaEventRecord"),
        on_host(ENGINE_PREFIX + "AddmmBackward0", 200, 300, 9, **node),
        on_host("AddmmBackward0", 205, 290, 10, scope=1, **node),
        on_host("aten::mm", 210, 280, 11, **engine),
        launch(220, 76, 11, **engine),
        on_device("gemm", 765, 1_500, 76, 11),
        scope("nccl:all_reduce", 310, 400, 12),
        launch(320, 77, 12),
        on_device("ncclDevKernel_AllReduce", 1_400, 1_900, 77, 12, device_resource_id=20),
        # A graph that no op launched.
        launch(500, 78, 0, "cudaGraphLaunch"),
        on_device("fused", 1_900, 1_930, 78, 0),
        on_device("fused", 1_930, 1_970, 78, 0),
        launch(600, 79, 0, "cudaDeviceSynchronize"),
    ]


def ours(events: list[Event], devices: str = "") -> Trace:
    """The trace of these events, exported as Kineto exports them; `devices` begins categories."""
    with tempfile.TemporaryDirectory() as folder:
        return read(written(Path(folder), [_exported(event, devices) for event in events]))


def _exported(event: Event, devices: str) -> dict[str, Any]:
    kind, on_cpu = event.activity_type(), event.device_type() == DeviceType.CPU
    is_linked = kind not in ("cpu_op", "user_annotation")
    arguments = {"External id": event.linked_correlation_id() if is_linked else event.correlation_id()}
    if is_linked:
        arguments["correlation"] = event.correlation_id()
    if event.sequence_nr() >= 0:
        arguments |= {"Sequence number": event.sequence_nr(), "Fwd thread id": event.fwd_thread_id()}
    category = kind if not is_linked or not devices else devices + kind.removeprefix("gpu_").removeprefix("cuda_")
    return {
        "ph": "X",
        "cat": category,
        "name": event.name(),
        "pid": event.device_index(),
        "tid": event.device_resource_id(),
        "ts": event.start_ns() / 1_000,
        "dur": event.duration_ns() / 1_000,
        "args": arguments
        if on_cpu
        else {**arguments, "device": event.device_index(), "stream": event.device_resource_id()},
    }


def torchs(events: list[Event], use_device: str = "cuda") -> EventList:
    """The list that torch makes of Kineto's events."""
    profiler = torch_profiler.profile(use_kineto=True)
    profiler.use_device = use_device
    results = SimpleNamespace(events=lambda: events, trace_start_ns=lambda: 0)
    found = EventList(profiler._parse_kineto_results(results), use_device=use_device)
    found._build_tree()
    return found


def rows_of(averages: Any, *attributes: str) -> dict[Any, Any]:
    """Attributes of each row by name, whether it is on a device, and whether a user named it."""
    found = {
        (row.key, row.device_type == DeviceType.CPU, bool(row.is_user_annotation)): tuple(
            round(value, 6) if isinstance(value := getattr(row, name), float) else value for name in attributes
        )
        for row in averages
    }
    assert len(found) == len(averages)
    return found


def test_rows_of_a_training_step_equal_torchs() -> None:
    events = training_step()
    attributes = ("count", *TIMES, "is_async", "use_device")

    assert rows_of(key_averages(ours(events)), *attributes) == rows_of(torchs(events).key_averages(), *attributes)


def test_the_table_has_torchs_columns_and_totals() -> None:
    events = training_step()
    mine, theirs = key_averages(ours(events)).table().splitlines(), torchs(events).key_averages().table().splitlines()

    assert [title.strip() for title in mine[1].split("  ") if title] == [
        title.strip() for title in theirs[1].split("  ") if title
    ]
    assert "Self CUDA time total: 1.992ms" in mine
    assert "Self CUDA time total: 1.992ms" in theirs


def test_single_events_equal_torchs() -> None:
    events = training_step()
    attributes = (*TIMES, "device_index", "is_user_annotation")
    theirs = sorted(
        (event.name, event.time_range.start, event.device_type.name, *(getattr(event, name) for name in attributes))
        for event in torchs(events)
        if event.device_type != DeviceType.CPU
    )
    mine = sorted(
        (event.key, event.start_ns / 1_000, event.device_type, *(getattr(event, name) for name in attributes))
        for event in Events(ours(events))
        if event.device_type != "CPU"
    )
    assert mine == theirs


def test_an_op_knows_its_kernels_as_in_torch() -> None:
    events = training_step()
    mine = {event.name: event.kernels for event in Events(ours(events)) if event.kernels}
    theirs = {event.name: event.kernels for event in torchs(events) if event.kernels}

    assert {name: [tuple(kernel) for kernel in kernels] for name, kernels in mine.items()} == {
        name: [tuple(kernel) for kernel in kernels] for name, kernels in theirs.items()
    }


@pytest.mark.parametrize(("device", "ours_is"), [("XPU", "xpu"), ("PrivateUse1", "npu")])
def test_rows_of_other_devices_equal_torchs(device: str, ours_is: str) -> None:
    events = training_step()
    for event in events:
        if event.facts["device_type"] != DeviceType.CPU:
            event.facts["device_type"] = getattr(DeviceType, device)
    prefix = device.lower() + "_"
    mine, theirs = key_averages(ours(events, prefix)), torchs(events, device.lower()).key_averages()

    assert rows_of(mine, "count", *TIMES) == rows_of(theirs, "count", *TIMES)
    assert {row.use_device for row in mine} == {ours_is}


def test_on_mtia_an_op_has_the_time_of_its_kernels_which_torch_leaves_out() -> None:
    events = [
        on_host("aten::mm", 0, 10, 1),
        on_device("gemm", 20, 50, 70, 1, activity_type="mtia_ccp_events", device_type=DeviceType.MTIA),
    ]
    mine, theirs = key_averages(ours(events)), torchs(events, "mtia").key_averages()

    assert {row.key: row.device_time_total for row in mine} == {"aten::mm": 30, "gemm": 30}
    assert {row.key: row.device_time_total for row in theirs} == {"aten::mm": 0, "gemm": 30}
    assert {row.use_device for row in mine} == {row.use_device for row in theirs} == {"mtia"}


def test_kernels_and_calls_disturb_no_phase() -> None:
    trace = ours(training_step())
    phase = {trace.names[trace.name[at]]: PHASES[trace.phase[at]] for at in range(len(trace))}

    assert {name: phase[name] for name in ("aten::copy_", "aten::addmm", "aten::sum", "bias")} == {
        "aten::copy_": "other",
        "aten::addmm": "forward",
        "aten::sum": "forward",
        "bias": "forward",
    }
    assert {phase[name] for name in ("aten::ones_like", "fill", "AddmmBackward0", "aten::mm")} == {"backward"}
    linked = [trace.names[name] for name in trace.name[trace.forward >= 0]]
    assert linked == [ENGINE_PREFIX + "AddmmBackward0", "AddmmBackward0", "aten::mm", "cudaLaunchKernel"]
    assert {trace.names[trace.name[at]] for at in trace.forward[trace.forward >= 0]} == {"aten::addmm"}
