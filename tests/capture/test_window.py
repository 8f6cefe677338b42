"""One window and its hooks."""

import pytest

import mtprof_nb as mtp
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.shared.scopes_hook import ScopesHook
from mtprof_nb.capture.window import Window


def test_hook_dispatch_is_named_though_it_recorded_nothing() -> None:
    pytest.importorskip("torch")
    with mtp.profile(hook="dispatch") as prof:
        pass
    assert prof.trace.hooks == ("dispatch",)


def test_every_hook_that_was_asked_for_is_named_though_none_recorded_anything() -> None:
    pytest.importorskip("torch")
    window = Window("dispatch", Request())
    window.hooks = {"scopes": ScopesHook(window.request), **window.hooks}
    window.start()

    assert window.stop().hooks == ("scopes", "dispatch")


def test_following_other_threads_that_had_no_op_is_no_hook_of_the_recording() -> None:
    torch = pytest.importorskip("torch")
    with mtp.profile(hook="kineto", profile_memory=True) as prof:
        torch.ones(2)
    assert prof.trace.hooks == ("kineto",)
