"""One event: mapping, attributes, what is absent."""

import copy
import json
import pickle
from enum import Enum

import pytest
from traces import event, make_trace

from mtprof_nb.tables.event import DeviceName
from mtprof_nb.tables.events import Events

ALWAYS = ["name", "kind", "device_type", "start_ns", "end_ns", "duration_ns", "step", "thread_id", "phase"]
OF_OPS = ["correlation_id", "runtime_name", "runtime_tid"]


def events(*rows, **options):
    return Events(make_trace(list(rows), **options))


@pytest.fixture
def full():
    """A forward op and its backward, with everything recorded."""
    stack = (("model.py", 12, "forward"), ("train.py", 3, "<module>"))
    return events(
        event("train", 0, 1000, kind="scope", phase="other"),
        event(
            "aten::cat",
            100,
            400,
            thread=77,
            step=2,
            sequence_nr=5,
            shapes=(((2, 3), (4, 3)), ()),
            dtypes=("TensorList", ""),
            stack=stack,
            memory=(1000, 1024),
            flops=12,
            module="encoder.0",
            overload="default",
        ),
        event("CatBackward0", 500, 600, phase="backward", forward=1, sequence_nr=5, stack=stack, stack_is_forward=True),
        event("aten::add", 700, 710, device="NPU", memory=(50, 40)),
    )


def test_with_no_flags_an_event_has_the_keys_that_are_always_there_and_an_op_three_more():
    found = events(event("scope", 0, 10, kind="scope"), event("aten::mm", 1, 5))

    assert list(found[0]) == ALWAYS
    assert list(found[1]) == ALWAYS + OF_OPS


def test_a_mapping_holds_what_was_recorded_in_plain_types(full):
    assert dict(full[1]) == {
        "name": "aten::cat",
        "kind": "op",
        "device_type": "CPU",
        "start_ns": 100,
        "end_ns": 400,
        "duration_ns": 300,
        "step": 2,
        "thread_id": 77,
        "phase": "forward",
        "correlation_id": 1,
        "runtime_name": "dispatch_kernel",
        "runtime_tid": 77,
        "sequence_nr": 5,
        "input_shapes": [[[2, 3], [4, 3]], []],
        "stack": ["model.py:12:forward", "train.py:3:<module>"],
        "flops": 12,
        "module": "encoder.0",
        "cpu_memory_allocated_before": 1000,
        "cpu_memory_allocated_after": 1024,
        "cpu_memory_allocated_delta": 24,
    }


def test_every_event_is_json_and_every_key_is_an_attribute(full):
    for found in full:
        assert json.loads(json.dumps(dict(found))) == dict(found)
        assert {key: getattr(found, key) for key in found} == dict(found)


def test_a_lent_stack_is_marked_as_the_forward_ops(full):
    assert full[2]["stack_origin"] == "forward"
    assert full[2]["stack"] == full[1]["stack"]
    assert "stack_origin" not in full[1]


def test_memory_is_told_under_the_name_of_the_ops_own_device_and_of_ops_alone(full):
    assert full[3]["npu_memory_allocated_delta"] == -10
    assert "cpu_memory_allocated_before" not in full[3]
    assert not any("memory" in key for key in full[0])


def test_what_is_unknown_of_an_event_is_absent(full):
    assert {"flops", "module", "sequence_nr"}.isdisjoint(full[3])
    with pytest.raises(KeyError, match="flops"):
        full[3]["flops"]
    with pytest.raises(KeyError, match="nonsense"):
        full[3]["nonsense"]
    with pytest.raises(AttributeError, match="no attribute 'module'"):
        full[3].module  # noqa: B018


def test_attributes_that_torch_always_has_are_empty_where_nothing_was_recorded():
    found = events(event("aten::mm", 0, 1))[0]

    assert found.stack == found.input_shapes == found.input_dtypes == found.kernels == []
    assert found.flops == found.cpu_memory_usage == found.self_device_memory_usage == 0
    assert found.device_time_total == found.self_device_time_total == 0
    assert found.sequence_nr == -1
    assert found.fwd_thread == 0
    assert found.structured_input_strides == found.concrete_inputs == []
    assert found.kwinputs == {}
    assert found.python_id == found.python_parent_id == found.python_module_id == -1
    assert found.event_metadata is None
    assert found.overload_name == ""
    assert found.use_device is None
    assert found.get("stack") is None


def test_times_are_torchs_microseconds_since_the_recording_began():
    outer, inner = events(event("a", 2_000, 12_000), event("b", 3_000, 7_500), began_ns=1_000)

    assert (outer.time_range.start, outer.time_range.end) == (1.0, 11.0)
    assert outer.time_range.elapsed_us() == outer.cpu_time_total == outer.cpu_time == 10.0
    assert outer.self_cpu_time_total == 5.5
    assert inner.self_cpu_time_total == inner.cpu_time_total == 4.5
    assert inner.self_cpu_time_total_str == "4.500us"
    assert outer.count == 1


def test_an_event_knows_its_parent_and_children():
    outer, inner, other = events(event("a", 0, 10), event("b", 1, 5), event("c", 2, 10, thread=2))

    assert outer.cpu_parent is None
    assert outer.cpu_children == [inner]
    assert inner.cpu_parent == outer
    assert inner.cpu_children == other.cpu_children == []


def test_device_times_come_from_the_kernels_that_were_launched():
    outer, inner, kernel = events(
        event("linear", 0, 100_000),
        event("addmm", 10_000, 90_000),
        event("gemm", 50_000, 80_000, kind="kernel", device="CUDA", device_index=1, launcher=1),
    )

    assert [tuple(found) for found in inner.kernels] == [("gemm", 1, 30.0)]
    assert (outer.device_time_total, outer.self_device_time_total) == (30.0, 0.0)
    assert (inner.device_time_total, inner.self_device_time_total) == (30.0, 30.0)
    assert (kernel.device_time_total, kernel.cpu_time_total) == (30.0, 0.0)
    assert kernel.use_device == "cuda"
    with pytest.warns(FutureWarning, match="use `device_time_total` instead"):
        assert kernel.cuda_time_total == 30.0


def test_memory_of_an_event_is_told_with_and_without_its_childrens():
    outer, inner = events(
        event("a", 0, 10), event("b", 2, 5), allocations=[{"time_ns": 1, "nbytes": 8}, {"time_ns": 3, "nbytes": 64}]
    )

    assert (outer.cpu_memory_usage, outer.self_cpu_memory_usage) == (72, 8)
    assert (inner.cpu_memory_usage, inner.self_cpu_memory_usage) == (64, 64)


def test_scopes_have_torchs_numbers():
    scope, engine, node, op = events(
        event("train", 0, 100, kind="scope"),
        event("autograd::engine::evaluate_function: MulBackward0", 10, 90, phase="backward"),
        event("MulBackward0", 20, 80, phase="backward"),
        event("aten::mul", 30, 40, phase="backward"),
    )

    assert [scope.scope, engine.scope, node.scope, op.scope] == [7, 0, 1, 0]


def test_torchs_other_names_mean_what_they_mean_there(full):
    scope, forward, backward, _ = full

    assert (scope.is_user_annotation, forward.is_user_annotation) == (True, False)
    assert (scope.activity_type, forward.activity_type) == ("user_annotation", "cpu_op")
    assert (forward.thread, forward.device_resource_id, backward.fwd_thread) == (77, 77, 77)
    assert forward.input_dtypes == ["TensorList", ""]
    assert forward.structured_input_shapes == forward.input_shapes
    assert forward.overload_name == "default"
    assert [found.id for found in full] == [0, 1, 2, 3]
    assert (forward.is_async, forward.is_remote, forward.is_legacy, forward.node_id) == (False, False, False, -1)
    assert not forward.is_python_function


def test_ids_link_a_kernel_to_the_op_that_launched_it():
    found = events(
        event("scope", 0, 100, kind="scope"),
        event("aten::mm", 10, 50),
        event("gemm", 60, 90, kind="kernel", device="CUDA", thread=7, launcher=1),
    )

    assert [one.external_id for one in found] == [0, 1, 1]
    assert [one.linked_correlation_id for one in found] == [0, 0, 1]


def test_what_is_never_recorded_has_torchs_value_for_an_event_without_it(full):
    one = full[1]

    assert (one.concrete_inputs, one.kwinputs, one.structured_input_strides) == ([], {}, [])
    assert (one.flow_id, one.flow_type, one.flow_start, one.event_metadata) == (0, 0, False, None)
    assert (one.python_id, one.python_parent_id, one.python_module_id) == (-1, -1, -1)
    assert (one.self_cpu_percent, one.total_cpu_percent, one.total_device_percent) == (-1, -1, -1)


def test_the_deprecated_metadata_text_has_the_number_of_a_chrome_trace_and_what_a_device_said():
    found = events(event("aten::mm", 0, 9), event("gemm", 3, 5, kind="kernel", device="CUDA", extra={"stream": "7"}))

    with pytest.warns(FutureWarning, match="metadata_json"):
        assert [one.metadata_json for one in found] == ['"Ev Idx": 0', '"Ev Idx": 1, "stream": 7']


def test_the_key_of_a_step_is_that_of_all_steps():
    found = events(event("ProfilerStep#7", 0, 1, kind="scope"))[0]

    assert (found.name, found.trace_name, found.key) == ("ProfilerStep#7", "ProfilerStep#7", "ProfilerStep*")


def test_a_device_type_equals_its_name_and_torchs_member():
    torchs = Enum("DeviceType", ["CPU", "CUDA", "PrivateUse1"])
    npu = events(event("aten::add", 0, 1, device="NPU"))[0].device_type

    assert npu == "NPU"
    assert "NPU" == npu  # noqa: SIM300 - both ways
    assert npu == torchs.PrivateUse1
    assert npu != torchs.CUDA
    assert npu != "CPU"
    assert npu != 3
    assert {npu: 1}["NPU"] == 1
    assert npu != "PrivateUse1", "equal strings must have equal hashes"
    assert DeviceName("CPU") == torchs.CPU


def test_a_copied_event_is_the_same_event(full):
    assert copy.copy(full[1]) == full[1]
    assert copy.deepcopy(full[1]) == full[1]
    assert not hasattr(full[1], "_repr_html_")


def test_events_and_rows_come_out_of_a_pickle_as_they_went_in_and_cannot_change_there(full):
    event, rows = pickle.loads(pickle.dumps((full[1], full.key_averages())))

    assert dict(event) == dict(full[1])
    assert [vars(row) | {"_first": None} for row in rows] == [
        vars(row) | {"_first": None} for row in full.key_averages()
    ]
    assert rows.table() == full.key_averages().table()
    trace = event._trace
    assert not any(column.flags.writeable for column in (trace.start_ns, trace.stack, trace.stacks.frame))
    with pytest.raises(TypeError):
        trace.metadata["key"] = "text"


def test_rows_can_be_copied_deeply(full):
    rows = full.key_averages()
    copied = copy.deepcopy(rows)
    copied[0].count = 7

    assert [row.key for row in copied] == [row.key for row in rows]
    assert rows[0].count == 1


def test_events_write_themselves_to_files_as_torchs_list_does(full, tmp_path):
    full.export_chrome_trace(tmp_path / "trace.json")
    names = {row.get("name") for row in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {"train", "aten::cat", "CatBackward0"} <= names

    found = events(event("aten::mm", 0, 5_000, stack=(("f.py", 1, "f"), ("f.py", 9, "<module>"))))
    found.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    assert (tmp_path / "stacks.txt").read_text() == "f.py:9:<module>;f.py:1:f 5\n"
    assert found.supported_export_stacks_metrics()[0] == "self_cpu_time_total"
    with pytest.raises(ValueError, match="metric should be one of"):
        found.export_stacks(tmp_path / "stacks.txt", "flops")


def test_an_op_has_the_device_time_of_its_kernels_and_copies_and_not_of_scopes_on_the_device():
    on_device = {"device": "CUDA", "thread": 7, "launcher": 0}
    work, others = ("kernel", "copy", "set", "collective"), ("sync", "device_scope")
    launched = [
        event(kind, 1_000, 1_000 * (2 + at), kind=kind, **on_device) for at, kind in enumerate((*work, *others))
    ]
    found = {one.name: one for one in Events(make_trace([event("mm", 0, 500), *launched]))}

    assert [found[kind].activity_type for kind in (*work, *others)] == [
        *("kernel", "gpu_memcpy", "gpu_memset", "kernel", "cuda_sync", "gpu_user_annotation"),
    ]
    assert {kernel.name for kernel in found["mm"].kernels} == set(work)
    assert [found[name].self_device_time_total for name in ("mm", *others)] == [10.0, 0.0, 6.0]
    assert [found[name].is_user_annotation for name in ("mm", "kernel", "device_scope")] == [False, False, True]
