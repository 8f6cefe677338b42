"""Our Chrome trace beside the one that Kineto itself writes of the very same recording: by category, key and type."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import mtprof_nb as mtp  # noqa: E402
from mtprof_nb.capture.kineto import exported_trace  # noqa: E402
from mtprof_nb.reading import read  # noqa: E402

Document = dict[str, Any]
FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")
FLAG_SETS = [{}, *({flag: True} for flag in FLAGS), dict.fromkeys(FLAGS, True)]
#: Numbered anew, for a recording may be put together of several of Kineto's.
NUMBERED = {"Ev Idx", "External id", "Python id", "Python parent id"}
INPUTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
KEYWORDS = {"alpha": 1, "beta": "two", "delta": True}


def _train() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    optimizer = torch.optim.Adam(model.parameters())
    with mtp.record_function("my scope", "its argument"):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(5, 4)).sum().backward()
            optimizer.step()
    with torch._C._profiler._RecordFunctionFast("fast", [torch.ones(2), 3, 2.5], KEYWORDS):
        torch.cat([torch.ones(2, 2), torch.zeros(2, 2)], 0)
    torch.full((2,), 1e-3).add_(float("inf")).mul_(-0.0).add_(1e12).sum(dtype=torch.complex64).mul(1 + 2j)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Document, Document]]:
    """A recording of `_train`, or of another program, as we write it and as Kineto does."""

    def record(program: Callable[[], None] = _train, **flags: Any) -> tuple[Document, Document]:
        def copy_too(path: Path, **options: Any) -> Any:
            shutil.copy(path, tmp_path / "kineto.json")
            return read(path, **options)

        monkeypatch.setattr(exported_trace, "read", copy_too)
        monkeypatch.setattr(exported_trace.Noted, "of_session", lambda _, kineto_ns: kineto_ns)
        with mtp.profile(hook="kineto", **flags) as prof:
            program()
        prof.export_chrome_trace(str(tmp_path / "ours.json"))
        ours, kinetos = (json.loads((tmp_path / name).read_text()) for name in ("ours.json", "kineto.json"))
        return ours, kinetos

    return record


def _types(document: Document) -> dict[tuple[Any, ...], set[str]]:
    """For each category and key (of an event, or of its `args`), the types of its values."""
    found = defaultdict(set)
    for one in document["traceEvents"]:
        category = (one.get("cat"), one["ph"], one["name"] if one["ph"] in "Mi" else "")
        for key, value in one.items():
            found[*category, key].add(type(value).__name__)
        for key, value in one.get("args", {}).items():
            found[*category, "args", key].add(type(value).__name__)
    return found


def _events(document: Document, category: str) -> list[dict[str, Any]]:
    found = [one for one in document["traceEvents"] if one.get("cat") == category]
    return sorted(found, key=lambda one: (one["ts"], -one.get("dur", 0), one["ph"]))


def _unasked(flags: dict[str, bool]) -> set[str]:
    """Keys that Kineto records for another purpose: Python calls to find modules, inputs to count operations.

    `CallFrom`, which PyTorch 2.15 writes, repeats a line of the call's parent.
    """
    inputs = set() if "record_shapes" in flags else {*INPUTS, *KEYWORDS}
    return {*inputs, "CallFrom"} if "with_stack" in flags else {*inputs, "python_function"}


@pytest.mark.parametrize("flags", FLAG_SETS, ids=lambda flags: "+".join(flags) or "no flags")
def test_we_write_every_key_that_kineto_writes_with_the_same_type(
    both: Callable[..., tuple[Document, Document]], flags: dict[str, bool]
) -> None:
    ours, kinetos = both(**flags)

    assert {key: type(value) for key, value in kinetos.items()}.items() <= {
        key: type(value) for key, value in ours.items()
    }.items()
    assert [ours[key] for key in ("host_name", "trace_id", "schemaVersion", "deviceProperties")] == [
        kinetos[key] for key in ("host_name", "trace_id", "schemaVersion", "deviceProperties")
    ]
    written, expected = _types(ours), _types(kinetos)
    unasked = _unasked(flags)
    # A call without a parent has the number null with PyTorch 2.13, and none with 2.15.
    expected["python_function", "X", "", "args", "Python parent id"] |= {"NoneType"}
    # A device that another test of this process simulates adds a span of its own, of this name.
    unasked |= {"Iteration Start: none"}
    missing = {key: kinds for key, kinds in expected.items() if written.get(key) != kinds and not unasked & {*key}}
    assert missing == {}


@pytest.mark.parametrize("flags", FLAG_SETS, ids=lambda flags: "+".join(flags) or "no flags")
@pytest.mark.parametrize("category", ["cpu_op", "user_annotation"])
def test_every_event_says_what_kinetos_says(
    both: Callable[..., tuple[Document, Document]], flags: dict[str, bool], category: str
) -> None:
    ours, kinetos = (_events(document, category) for document in both(**flags))

    assert len(ours) == len(kinetos)
    left_out = NUMBERED | _unasked(flags)
    for own, other in zip(ours, kinetos, strict=True):
        said = {key: value for key, value in other["args"].items() if key not in left_out}
        assert {**own, "args": {}} == {**other, "args": {}}
        assert {key: own["args"].get(key) for key in said} == said


def test_every_record_of_memory_says_what_kinetos_says(both: Callable[..., tuple[Document, Document]]) -> None:
    ours, kinetos = (_events(document, "cpu_instant_event") for document in both(profile_memory=True))
    found = {(one["ts"], one["args"]["Addr"], one["args"]["Bytes"]): one for one in kinetos}

    assert len(ours) > 100
    for own in ours:
        other = found[own["ts"], own["args"]["Addr"], own["args"]["Bytes"]]
        assert {**own, "args": {}} == {**other, "args": {}}
        # Ours counts what this recording allocated, Kineto's also what earlier ones did.
        counted = {key: own["args"][key] for key in ("Total Allocated", "Ev Idx")}
        assert own["args"] == {**other["args"], **counted}


def test_arrows_are_kinetos(both: Callable[..., tuple[Document, Document]]) -> None:
    def ends(document: Document) -> Counter[tuple[Any, ...]]:
        arrows: dict[int, dict[str, Any]] = defaultdict(dict)
        for one in _events(document, "fwdbwd"):
            arrows[one["id"]][one["ph"]] = (one["pid"], one["tid"], one["ts"])
        return Counter((arrow["s"], arrow["f"]) for arrow in arrows.values())

    ours, kinetos = both()

    assert ends(ours) == ends(kinetos)
    assert ends(ours)


def test_python_calls_have_the_parents_and_modules_that_kineto_gives_them(
    both: Callable[..., tuple[Document, Document]],
) -> None:
    def calls(document: Document) -> dict[tuple[Any, ...], dict[str, Any]]:
        events = _events(document, "python_function")
        # A call that crosses a scope has an event for its begin, and one for its end.
        ends = {one["id"]: one["ts"] for one in events if one["ph"] == "e"}
        begins = [one | {"dur": round(ends[one["id"]] - one["ts"], 3)} for one in events if one["ph"] == "b"]
        whole = [one for one in events if one["ph"] == "X"] + begins
        return {(one["tid"], one["ts"], one["dur"]): one for one in whole}

    def parents(found: dict[tuple[Any, ...], dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...] | None]:
        by_id = {one["args"]["Python id"]: key for key, one in found.items()}
        return {key: by_id.get(one["args"].get("Python parent id")) for key, one in found.items()}

    ours, kinetos = (calls(document) for document in both(with_stack=True))

    # Calls of the profiler itself are not recorded here.
    assert ours.keys() <= kinetos.keys()
    assert {key: one["name"] for key, one in ours.items()} == {key: kinetos[key]["name"] for key in ours}
    expected = parents(kinetos)

    def nearest_written(key: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        while key is not None and key not in ours:
            key = expected[key]
        return key

    assert parents(ours) == {key: nearest_written(expected[key]) for key in ours}
    modules = {key: one["args"].get("Python module id") for key, one in ours.items()}
    assert modules == {key: kinetos[key]["args"].get("Python module id") for key in ours}
    assert {0, 1} < set(modules.values())


def test_an_execution_trace_and_the_chrome_trace_know_a_call_by_the_same_number(
    both: Callable[..., tuple[Document, Document]], tmp_path: Path
) -> None:
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "execution.json"))
    ours, kinetos = both(execution_trace_observer=observer)

    nodes = json.loads((tmp_path / "execution.json").read_text())["nodes"]
    numbers = {
        attribute["value"]: node["name"]
        for node in nodes
        for attribute in node["attrs"]
        if attribute["name"] == "rf_id"
    }
    written = {one["args"]["Record function id"]: one["name"] for one in _events(ours, "cpu_op")}
    assert written == {number: numbers[number] for number in written}
    assert 0 not in written
    assert [one["args"]["Record function id"] for one in _events(ours, "cpu_op")] == [
        one["args"]["Record function id"] for one in _events(kinetos, "cpu_op")
    ]
