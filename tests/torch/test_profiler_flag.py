"""Torch's flag that a profiler records: true while hook `native` does, and right in any order of starts and stops."""

import os
from collections.abc import Callable
from itertools import permutations

import pytest
from recording import NATIVE

torch = pytest.importorskip("torch")

import mtprof_nb as mtp  # noqa: E402
from mtprof_nb.capture.native.recorder_loading import recorder  # noqa: E402

pytestmark = pytest.mark.parametrize("hook", [NATIVE])
EVENTS = ("own start", "own stop", "their start", "their stop")


def flag() -> bool:
    found: bool = torch.autograd.profiler._is_profiler_enabled
    return found


@pytest.mark.parametrize(
    "order",
    [
        order
        for order in permutations(EVENTS)
        if order.index("own start") < order.index("own stop") and order.index("their start") < order.index("their stop")
    ],
    ids=" ".join,
)
def test_it_is_true_as_long_as_one_of_two_profilers_records(hook: str, order: tuple[str, ...]) -> None:
    own, theirs = mtp.profile(hook=hook), torch.profiler.profile()
    act: dict[str, Callable[[], None]] = {
        "own start": own.start,
        "own stop": own.stop,
        "their start": theirs.start,
        "their stop": theirs.stop,
    }
    setter, recording = torch.autograd.profiler._set_is_profiler_enabled, set[str]()
    assert not flag()
    for event in order:
        who, what = event.split()
        act[event]()
        recording ^= {who}
        assert flag() is bool(recording), (event, what)
    assert torch.autograd.profiler._set_is_profiler_enabled is setter
    assert len(theirs.events()) >= 0


def test_what_code_opens_only_while_a_profiler_records_is_recorded(hook: str) -> None:
    def guarded() -> None:
        if torch.autograd.profiler._is_profiler_enabled:
            with torch._C._profiler._RecordFunctionFast("guarded", keyword_values={"kernels": ["first", "second"]}):
                torch.ones(2)
        else:
            torch.zeros(2)

    with mtp.profile(hook=hook, record_shapes=True) as prof:
        guarded()
    guarded()
    names = [one.name for one in prof.events()]
    assert (names[0], "aten::zeros" in names) == ("guarded", False)
    assert prof.events()[0].kwinputs == {"kernels": ["first", "second"]}


def test_compiled_code_has_the_scopes_that_torchs_own_profiler_sees(hook: str) -> None:
    @torch.compile(backend="eager")
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    x = torch.ones(2)
    compiled(x)
    with mtp.profile(hook=hook) as own:
        compiled(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        compiled(x)
    names = [one.name for one in own.events()]
    assert "Pregraph bytecode" in names
    assert names == [one.name for one in theirs.events()]


def test_it_is_false_after_a_program_that_fails(hook: str) -> None:
    with pytest.raises(KeyError), mtp.profile(hook=hook):
        raise KeyError(flag())
    assert not flag()


def test_it_is_false_after_a_start_and_a_stop_that_fail(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    found = recorder()
    assert found is not None
    with monkeypatch.context() as patch:
        patch.setattr(found, "start", fail)
        with pytest.raises(MemoryError), mtp.profile(hook=hook):
            pass
    assert not flag()
    prof = mtp.profile(hook=hook)
    prof.start()
    with monkeypatch.context() as patch:
        patch.setattr(found, "stop", fail)
        with pytest.raises(MemoryError):
            prof.stop()
    found.stop()
    assert not flag()


def test_it_is_false_in_a_forked_child(hook: str) -> None:
    with mtp.profile(hook=hook):
        child = os.fork()
        if child == 0:
            own = torch._C._profiler._RecordFunctionFast
            os._exit(int(flag()) + 2 * (type(own) is not type))
        _, status = os.waitpid(child, 0)
        assert flag()
    assert os.waitstatus_to_exitcode(status) == 0
