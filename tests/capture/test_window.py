"""One window and its hooks."""

import sys
from types import ModuleType

import pytest

import mtprof_nb as mtp
from mtprof_nb.capture import window as windows
from mtprof_nb.capture.buffers.scopes_hook import ScopesHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.registry import HOOK_KINDS, HookKind
from mtprof_nb.capture.window import Window
from mtprof_nb.errors import HookError, MtprofWarning
from mtprof_nb.model.trace import Trace, empty_trace


def test_a_hook_is_named_though_it_recorded_nothing() -> None:
    pytest.importorskip("torch")
    with mtp.profile(hook="kineto") as prof:
        pass
    assert prof.trace.hooks == ("kineto",)


def test_every_hook_that_was_asked_for_is_named_though_none_recorded_anything() -> None:
    pytest.importorskip("torch")
    window = Window("kineto", Request())
    window.hooks = {"scopes": ScopesHook(window.request), **window.hooks}
    window.start()

    assert window.stop().hooks == ("scopes", "kineto")


def test_what_is_missing_without_the_recorder_is_said_once_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MTPROF_RECORDER", "off")
    monkeypatch.setattr(windows, "_has_warned", False)
    Window("auto", Request())  # the recorder was switched off on purpose
    monkeypatch.setattr(windows, "is_switched_off", lambda: False)
    monkeypatch.setattr(windows, "why_not", lambda: "there is no compiler")
    Window("kineto", Request())

    with pytest.warns(MtprofWarning, match=r"by torch.profiler .*no compiler.*run: python -m mtprof_nb build"):
        Window("auto", Request())
    Window("auto", Request())


class FailsHalfWay(ScopesHook):
    """Installs itself in its runtime, then fails to start."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def start(self) -> None:
        vars(sys.modules["late_runtime"])["hook"] = self
        msg = "cannot start"
        raise HookError(msg)

    def stop(self) -> Trace:
        del vars(sys.modules["late_runtime"])["hook"]
        return empty_trace()


def test_a_hook_that_fails_to_start_during_a_recording_is_removed_and_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(HOOK_KINDS, "late", HookKind("late", "late_runtime", f"{__name__}:FailsHalfWay", event_ns=1))
    window = Window("auto", Request())
    window.start()
    monkeypatch.setitem(sys.modules, "late_runtime", ModuleType("late_runtime"))

    with pytest.raises(HookError, match="cannot start"):
        window.attach_new_runtimes()

    assert not hasattr(sys.modules["late_runtime"], "hook")
    assert "late" not in window.stop().hooks
