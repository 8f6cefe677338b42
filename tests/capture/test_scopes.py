"""Scopes are recorded where no runtime is, whatever else was asked for."""

from __future__ import annotations

import pytest

from mtprof_nb.capture.buffers.scopes_hook import ScopesHook
from mtprof_nb.capture.hook import Request
from mtprof_nb.model.trace import Recorded


@pytest.mark.parametrize("flag", ["record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"])
def test_a_flag_about_ops_does_not_keep_scopes_from_being_recorded(flag: str) -> None:
    hook = ScopesHook(Request(recorded=Recorded(**{flag: True})))
    hook.start()
    with hook.scope("outer"), hook.scope("inner"):
        pass
    trace = hook.stop()

    assert [trace.names[name] for name in trace.name] == ["outer", "inner"]


def test_scopes_that_are_abandoned_are_kept_no_more_and_new_ones_are_none() -> None:
    hook = ScopesHook(Request())
    hook.start()
    with hook.scope("before"):
        pass
    hook.abandon()
    with hook.scope("after"):
        pass

    assert len(hook.stop()) == 0
