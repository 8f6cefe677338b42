"""A traceback shows the user's frames and the runtime's, and no function of a hook between them."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from mtprof_nb import capture
from mtprof_nb.cell.traceback import hide_hooks

FOLDER = Path(capture.__file__).parent


def _function(file: Path, source: str) -> Any:
    """The function `f` of `source`, as if it stood in `file`."""
    names: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), names)
    return names["f"]


def _frames(error: BaseException | None) -> list[str]:
    assert error is not None
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


hook = _function(FOLDER / "some_hook.py", "def f(call):\n    return call()")


def test_a_hook_s_frame_between_two_others_is_taken_out() -> None:
    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError) as raised:  # noqa: PT011
        hook(lambda: hook(fails))
    hide_hooks(raised.value)

    assert _frames(raised.value) == [
        "test_a_hook_s_frame_between_two_others_is_taken_out",
        "<lambda>",
        "fails",
    ]


def test_a_hook_s_frame_at_the_end_is_taken_out() -> None:
    with pytest.raises(TypeError) as raised:
        hook(None)
    hide_hooks(raised.value)

    assert _frames(raised.value) == ["test_a_hook_s_frame_at_the_end_is_taken_out"]


def test_causes_and_members_are_cleaned_too() -> None:
    def fails() -> None:
        try:
            hook(None)
        except TypeError as cause:
            raise ExceptionGroup("many", [cause]) from cause

    with pytest.raises(ExceptionGroup) as raised:
        fails()
    hide_hooks(raised.value)

    assert _frames(raised.value.__cause__) == ["fails"]


def test_what_the_user_called_by_name_stays() -> None:
    public = _function(FOLDER / "schedule.py", "def f():\n    raise ValueError")
    elsewhere = _function(FOLDER.parent / "trace.py", "def f(call):\n    return call()")
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        elsewhere(public)
    hide_hooks(raised.value)

    assert _frames(raised.value)[1:] == ["f", "f"]


def test_nothing_is_nothing() -> None:
    hide_hooks(None)
