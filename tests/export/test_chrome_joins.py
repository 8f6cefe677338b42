"""The `args` of a Chrome trace's events: stacks, inputs, and numbers by which other tools join them."""

import json
from pathlib import Path
from typing import Any

from traces import event, make_trace

from mtprof_nb.export import chrome_trace
from mtprof_nb.model.trace import ENGINE_PREFIX as ENGINE
from mtprof_nb.model.trace import Trace


def _args(trace: Trace, folder: Path) -> dict[str, dict[str, Any]]:
    """The `args` of each event by its name; with a track of its own, of its begin and end."""
    chrome_trace.write(trace, folder / "trace.json")
    document = json.loads((folder / "trace.json").read_text("ascii"))
    endings = {"X": "", "b": " b", "e": " e"}
    return {one["name"] + endings[one["ph"]]: one["args"] for one in document["traceEvents"] if one["ph"] in endings}


def test_a_node_of_the_backward_pass_names_the_thread_of_its_forward_op(tmp_path: Path) -> None:
    rows = [
        event("aten::mul", 0, 9, thread=11, sequence_nr=4),
        event(ENGINE + "MulBackward0", 20, 50, thread=12, sequence_nr=4, forward=0, phase="backward"),
        event("MulBackward0", 21, 49, thread=12, sequence_nr=4, forward=0, phase="backward"),
        event("aten::neg", 22, 30, thread=12, sequence_nr=7, forward=0, phase="backward"),
        event(ENGINE + "LostBackward0", 60, 70, thread=12, sequence_nr=1, phase="backward"),
    ]
    numbered = _args(make_trace([row | {"thread_number": row.get("thread", 11) - 10} for row in rows]), tmp_path)
    native = _args(make_trace(rows), tmp_path)

    threads = {name: args.get("Fwd thread id") for name, args in numbered.items() if name != "PyTorch Profiler (0)"}
    assert threads == {
        "aten::mul": 0,
        ENGINE + "MulBackward0": 1,
        "MulBackward0": 1,
        "aten::neg": 0,
        ENGINE + "LostBackward0": None,
    }
    assert native["MulBackward0"]["Fwd thread id"] == 11


def test_a_scope_has_a_number_that_no_op_has(tmp_path: Path) -> None:
    rows = [event("outer", 0, 90, kind="scope"), event("a", 1, 2), event("b", 3, 4), event("in", 5, 9, kind="scope")]
    args = _args(make_trace(rows), tmp_path)

    assert [args[name]["External id"] for name in ("a", "b", "outer", "in")] == [1, 2, 3, 4]


def test_a_python_call_knows_the_call_around_it_whatever_stands_between(tmp_path: Path) -> None:
    rows = [
        event("train.py(3): train", 0, 90, kind="python"),
        event("mine", 5, 80, kind="scope"),
        event("nn.Module: Linear_1", 10, 60, kind="python"),
        event("aten::linear", 15, 40),
        event("hook.py(1): inside", 20, 30, kind="python"),
        event("elsewhere.py(1): run", 20, 30, kind="python", thread=2),
    ]
    args = _args(make_trace(rows), tmp_path)

    keys = ("Python id", "Python parent id", "Python module id")
    calls = {name: tuple(facts.get(key, "") for key in keys) for name, facts in args.items() if "Python id" in facts}
    assert calls == {
        "train.py(3): train": (1, None, ""),
        "nn.Module: Linear_1": (2, 1, 1),
        "hook.py(1): inside": (3, 2, ""),
        "elsewhere.py(1): run": (4, None, ""),
    }


def test_a_call_that_crosses_a_scope_has_a_track_of_its_own_and_is_a_parent(tmp_path: Path) -> None:
    rows = [
        event("train.py(3): train", 0, 90, kind="python"),
        event("profiler.py(9): __enter__", 10, 30, kind="python"),
        event("called.py(1): called", 12, 14, kind="python"),
        event("mine", 20, 80, kind="scope"),
    ]
    args = _args(make_trace(rows), tmp_path)

    crossing = args.pop("profiler.py(9): __enter__ b")
    assert crossing == args.pop("profiler.py(9): __enter__ e")
    assert crossing["Python parent id"] == args["train.py(3): train"]["Python id"] == 1
    assert args["called.py(1): called"]["Python parent id"] == crossing["Python id"] == 2


def test_what_a_scope_launched_has_its_number_and_launches_have_numbers_of_their_own(tmp_path: Path) -> None:
    rows = [
        event("mine", 0, 90, kind="scope"),
        event("aten::mm", 1, 20),
        event("cudaLaunchKernel", 30, 35, kind="runtime", launcher=0),
        event("gemm", 40, 50, kind="kernel", device="CUDA", thread=7, launcher=0, launch=2),
    ]
    args = _args(make_trace(rows), tmp_path)

    assert [args[name]["External id"] for name in ("aten::mm", "mine", "cudaLaunchKernel", "gemm")] == [1, 2, 2, 2]
    assert [args[name]["correlation"] for name in ("cudaLaunchKernel", "gemm")] == [3, 3]


def test_the_number_of_a_call_in_an_execution_trace_is_written(tmp_path: Path) -> None:
    args = _args(make_trace([event("a", 0, 5, record_function=17), event("b", 7, 9)]), tmp_path)

    assert [args[name]["Record function id"] for name in "ab"] == [17, 0]


def test_values_of_inputs_are_spelt_as_pytorch_prints_them(tmp_path: Path) -> None:
    inputs = [None, 3, True, 1.0, -0.0, 0.001, 1e12, float("inf"), 1 - 2j, [5, 4], [0.5, 2.0], "text"]
    rows = [event("a", 0, 5, shapes=((2,), ()), strides=((1,), ()), values=(inputs, {}))]
    args = _args(make_trace(rows), tmp_path)["a"]

    assert args["Concrete Inputs"] == [
        *("", "3", "True", "1.", "-0.", "0.001", "1000000000000", "inf", "1.-2.j", "[5, 4]", "[0.5, 2.]", "text"),
    ]
    assert args["Input Strides"] == [[1], []]


def test_keywords_are_keys_unless_the_file_has_the_key_itself(tmp_path: Path) -> None:
    keywords = {"alpha": 1, 'b"c': 'x"y', "many": ["a"], "stack": "mine", "nan": float("nan"), "sizes": [1, 2]}
    args = _args(make_trace([event("a", 0, 5, values=([], keywords))]), tmp_path)["a"]

    assert {key: args.get(key) for key in keywords} == {
        "alpha": 1,
        'b"c': 'x"y',
        "many": ["a"],
        "stack": None,
        "nan": None,
        "sizes": None,
    }
    assert "Concrete Inputs" not in args


def test_what_a_device_said_of_an_event_is_written(tmp_path: Path) -> None:
    said = {"grid": "[1, 2, 3]", "Collective name": '"allreduce"', "stream": "99"}
    rows = [event("gemm", 0, 5, kind="kernel", device="CUDA", thread=7, launcher=-1, extra=said)]
    args = _args(make_trace(rows), tmp_path)["gemm"]

    assert (args["grid"], args["Collective name"], args["stream"]) == ([1, 2, 3], "allreduce", 7)


def test_the_host_and_what_its_allocator_reserved_are_told(tmp_path: Path) -> None:
    trace = make_trace([event("a", 0, 5)], [{"time_ns": 1, "nbytes": 8, "reserved": 512}], host="node7")
    chrome_trace.write(trace, tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text())

    assert document["host_name"] == "node7"
    (memory,) = (one for one in document["traceEvents"] if one["name"] == "[memory]")
    assert memory["args"]["Total Reserved"] == 512


def test_a_python_function_has_no_stack_of_its_own_as_it_is_part_of_one(tmp_path: Path) -> None:
    rows = [event("f.py(1): f", 1_000, 2_000, kind="python", stack=(("f.py", 1, "f"),))]

    assert {"Call stack", "stack"}.isdisjoint(_args(make_trace(rows), tmp_path)["f.py(1): f"])
