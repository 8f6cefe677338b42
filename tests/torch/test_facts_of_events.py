"""Facts of events, beside those that torch's own `FunctionEvent`s have of the very same recording."""

import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import mtprof_nb as mtp  # noqa: E402
from mtprof_nb.capture.kineto import kineto_hook as kineto  # noqa: E402
from mtprof_nb.model.merge import merge  # noqa: E402
from mtprof_nb.tables.event import Event  # noqa: E402

#: Of torch's attributes, those that a user reads values out of; numbers of threads are torch's own there.
FACTS = (
    *("concrete_inputs", "kwinputs", "structured_input_shapes", "structured_input_strides", "input_dtypes"),
    *("sequence_nr", "python_module_id", "event_metadata", "is_user_annotation"),
)

#: torch takes no inputs of `_RecordFunctionFast` where it listens to all threads, as it does without memory.
LISTENING_TO_ONE_THREAD: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "hook": "kineto"}


@pytest.fixture
def torchs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Filled with torch's events of each recording that ends."""
    found: list[Any] = []
    build_trace = kineto.exported_trace

    def parse_too(results: Any, *args: Any) -> Any:
        found.extend(torch.autograd.profiler.profile()._parse_kineto_results(results))
        return build_trace(results, *args)

    monkeypatch.setattr(kineto, "exported_trace", parse_too)
    return found


def _program() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    model(torch.ones(5, 4).t().contiguous().t()).sum().backward()
    torch.cat([torch.ones(2, 2), torch.zeros(2, 2).t()], 0).select(0, 1).add_(1.0).add_(1).clamp(0, True)
    for value in (1.0, 1, True):
        torch.full((2,), value).mul(1 + 2j).mul(float("inf"))
    keywords = {"alpha": 1, "beta": "two", "delta": True}
    with torch._C._profiler._RecordFunctionFast("fast", [torch.ones(2), 3, "x", [1, 2]], keywords):
        pass
    with mtp.record_function("mine", "its argument"):
        pass


def _events(trace: mtp.Trace) -> list[Event]:
    """All of them, also those that `events()` folds into others."""
    return [Event(trace, position) for position in range(len(trace))]


@pytest.mark.parametrize(
    "flags", [{}, {"record_shapes": True}, {"record_shapes": True, "with_stack": True, "profile_memory": True}]
)
def test_events_have_the_facts_that_torchs_have(torchs: list[Any], flags: dict[str, bool]) -> None:
    with mtp.profile(hook="kineto", **flags) as prof:
        _program()
    own = [one for one in _events(prof.trace) if one.kind != "python"]
    theirs = [one for one in torchs if not one.is_python_function and one.name != "[memory]"]
    theirs.sort(key=lambda one: (one.time_range.start, -one.time_range.end))
    pairs = list(zip(own, theirs, strict=True))
    assert [one.name for one in own] == [one.name for one in theirs]

    assert len(pairs) > 50
    for ours, other in pairs:
        assert {fact: getattr(ours, fact) for fact in FACTS} == {fact: getattr(other, fact) for fact in FACTS}, ours


def _fast(prof: mtp.profile) -> Any:
    return next(one for one in prof.events() if one.name == "fast")


def test_values_keep_their_types() -> None:
    with mtp.profile(**LISTENING_TO_ONE_THREAD) as prof:
        _program()
    filled = [one.concrete_inputs[1] for one in prof.events() if one.name == "aten::full"]

    assert [(type(value), value) for value in filled] == [(float, 1.0), (int, 1), (bool, True)]
    assert type(_fast(prof).kwinputs["delta"]) is bool


@pytest.mark.filterwarnings("ignore:Unable to infer type")
def test_a_tensor_that_was_given_by_keyword_is_not_kept() -> None:
    keywords = {"held": torch.ones(3), "kept": 5}
    with (
        mtp.profile(**LISTENING_TO_ONE_THREAD) as prof,
        torch._C._profiler._RecordFunctionFast("fast", [torch.ones(2)], keywords),
    ):
        pass

    assert _fast(prof).kwinputs == {"held": "NULL", "kept": 5}
    assert _fast(prof).concrete_inputs == [None]


def test_facts_are_the_same_out_of_a_pickle_and_in_a_recording_of_several_windows() -> None:
    def recorded() -> mtp.profile:
        with mtp.profile(**LISTENING_TO_ONE_THREAD) as prof:
            _program()
        return prof

    def facts(trace: mtp.Trace) -> list[Any]:
        names = ("concrete_inputs", "kwinputs", "structured_input_strides")
        return [[getattr(one, name) for name in names] for one in _events(trace)]

    first, second = recorded().trace, recorded().trace

    assert facts(pickle.loads(pickle.dumps(first))) == facts(first)
    assert facts(merge([first, second])) == facts(first) + facts(second)


def test_nothing_is_read_of_inputs_where_shapes_are_not_asked_for() -> None:
    with mtp.profile(with_flops=True, profile_memory=True, hook="kineto") as prof:
        _program()

    assert prof.trace.values is None
    assert prof.trace.shape is None
    assert _fast(prof).kwinputs == {}
