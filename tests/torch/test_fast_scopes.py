"""Torch's `_RecordFunctionFast`: recorded on all threads, by hook `native`, as torch records them on one."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recording import NATIVE
from traces import event, make_trace

torch = pytest.importorskip("torch")

import mtprof_nb as mtp  # noqa: E402
from mtprof_nb.building.noted_scopes import Input, NotedScope, with_noted_inputs  # noqa: E402
from mtprof_nb.tables.event import Event  # noqa: E402

FACTS = ("kind", "structured_input_shapes", "structured_input_strides", "input_dtypes", "concrete_inputs", "kwinputs")
NAMES = ("bare", "fast", "mine", "keywords")
INPUTS = [
    *(torch.ones(2, 3).t(), 3, "x", [1, 2], [torch.ones(2, 3), torch.zeros(1)], None, 1.5, object()),
    *((torch.ones(1),), [], True, {}, torch.nn.Parameter(torch.zeros(4, dtype=torch.int8), requires_grad=False)),
]
KEYWORDS = {
    "alpha": 1,
    "beta": "two",
    "gamma": 1.0,
    "delta": True,
    "many": ["a", "b"],
    "none": None,
    "mixed": ["a", 1],
    "ints": [1, 2],
    "tensor": torch.ones(2),
    "quoted": 'a"b',
    "empty": [],
    "imaginary": 1j,
    "sizes": (1, 2),
}


def fast(*args: Any) -> Any:
    return torch._C._profiler._RecordFunctionFast(*args)


def program() -> None:
    with fast("bare"):
        pass
    kept = fast("fast", INPUTS, KEYWORDS)
    for _ in range(2):
        with kept:
            torch.ones(2)
    with fast("fast", [torch.ones(5)]):
        pass
    with fast("mine", [torch.ones(2)], {"scope": "user_scope", "grid": 4}):
        pass
    with fast("keywords", [], {"grid": 4}):
        pass


def facts(prof: mtp.profile) -> list[tuple[str, dict[str, Any]]]:
    found = [one for one in prof.events() if one.name in NAMES]
    return [(one.name, {fact: getattr(one, fact) for fact in FACTS}) for one in found]


@pytest.mark.filterwarnings("ignore:Unable to infer type")
@pytest.mark.parametrize("hook", [NATIVE])
def test_a_torch_profiler_inside_sees_each_scope_once_and_so_does_hook_native(hook: str) -> None:
    with mtp.profile(hook=hook, record_shapes=True) as own:
        program()
        with torch.profiler.profile(record_shapes=True) as theirs:
            program()
        outer = fast("outer")
        with outer, torch.profiler.profile():
            pass
        program()

    once = facts(own)[:6]
    assert [name for name, _ in once].count("fast") == 3
    assert facts(own) == once * 3
    assert [one.name for one in own.events()].count("outer") == 1
    assert [one.name for one in theirs.events()].count("fast") == 3


@pytest.mark.parametrize("hook", [NATIVE])
def test_a_chrome_trace_has_the_keywords_of_a_scope_on_another_thread(tmp_path: Path, hook: str) -> None:
    def run() -> None:
        with fast("elsewhere", [torch.ones(3)], {"grid": "(4, 1, 1)", "names": ["x", 'y"z']}):
            pass

    with mtp.profile(hook=hook, record_shapes=True) as prof:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    prof.export_chrome_trace(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]

    (args,) = [one["args"] for one in written if one["name"] == "elsewhere"]
    assert (args["grid"], args["Input Dims"], args["runtime_tid"]) == ("(4, 1, 1)", [[3]], thread.native_id)
    assert args["names"] == ["x", 'y"z']


@pytest.mark.parametrize("hook", [NATIVE])
def test_torchs_class_is_back_after_the_recording_and_a_scope_made_inside_goes_on(hook: str) -> None:
    own = torch._C._profiler._RecordFunctionFast
    with mtp.profile(hook=hook, record_shapes=True):
        kept = fast("fast", [torch.ones(2)])
        assert torch._C._profiler._RecordFunctionFast is not own
    assert torch._C._profiler._RecordFunctionFast is own
    with kept:
        pass
    with torch.profiler.profile() as theirs, kept:
        pass
    assert "fast" in [one.name for one in theirs.events()]


def test_without_shapes_torchs_class_stays_in_its_place() -> None:
    own = torch._C._profiler._RecordFunctionFast
    with mtp.profile(hook="kineto"):
        assert torch._C._profiler._RecordFunctionFast is own


@pytest.mark.parametrize("hook", [NATIVE])
def test_what_is_raised_inside_and_an_input_that_fails_at_every_question_harm_nobody(hook: str) -> None:
    class Hostile(list[int]):
        def __bool__(self) -> bool:
            raise RuntimeError("not now")

    with mtp.profile(hook=hook, record_shapes=True) as prof:
        with pytest.raises(KeyError, match="user"), fast("raising", [torch.ones(2)]):
            raise KeyError("user")
        with fast("hostile", [Hostile([1])]):
            pass
    found = {one.name: one.input_shapes for one in prof.events()}
    assert (found["raising"], found["hostile"]) == ([[2]], [])


def test_no_inputs_are_given_where_it_is_not_certain_whose_they_are() -> None:
    rows = [
        *(event("fast", start, start + 5, thread=1, shapes=(), strides=(), values=((), {})) for start in (0, 10)),
        event("fast", 20, 25, thread=2, shapes=(), strides=(), values=((), {})),
    ]
    trace = make_trace(rows)
    given = [NotedScope(native_id, "fast", 3, (Input((2,), "float", (1,)),), {}) for native_id in (1, 2)]

    found = replace(trace, **with_noted_inputs(vars(trace), given))
    assert [Event(found, row).input_shapes for row in range(3)] == [[], [], [[2]]]
