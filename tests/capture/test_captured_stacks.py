"""Stacks as they are captured: the same call is the same stack, and nothing is kept alive."""

import asyncio
import sys
import sysconfig
import threading
from pathlib import Path

import numpy as np
import pytest

from mtprof_nb.capture.samples import python_stacks as stacks


def _captured(of: stacks.Stacks) -> stacks.StackEntry:
    return of.capture(sys._getframe(1))


def test_the_same_call_is_the_same_stack_and_another_line_another() -> None:
    found = stacks.Stacks()
    same = [_captured(found) for _ in range(2)]
    other = _captured(found)

    assert same[0] is same[1]
    assert other is not same[0]


def test_a_stack_holds_code_and_no_frame() -> None:
    class Local:
        alive = 0

        def __init__(self) -> None:
            Local.alive += 1

        def __del__(self) -> None:
            Local.alive -= 1

    found = stacks.Stacks()

    def function() -> stacks.StackEntry:
        local = Local()
        entry = _captured(found)
        assert local.alive == 1
        return entry

    entry = function()
    assert Local.alive == 0
    assert entry.inner is not None


def test_files_of_the_profiler_and_of_the_notebook_are_hidden_and_the_users_are_not() -> None:
    import runpy

    import IPython.core.interactiveshell

    assert stacks.is_hidden_file(stacks.__file__)
    assert stacks.is_hidden_file(IPython.core.interactiveshell.__file__)
    assert stacks.is_hidden_file(asyncio.events.__file__)
    assert stacks.is_hidden_file(threading.__file__)
    assert stacks.is_hidden_file(runpy.__file__)
    assert stacks.is_hidden_file("<frozen runpy>")
    assert not stacks.is_hidden_file(__file__)
    assert not stacks.is_hidden_file("<ipython-input-1-abc>")
    assert not stacks.is_hidden_file("/home/somebody/IPython/train.py")
    assert not stacks.is_hidden_file("/home/somebody/asyncio.py")
    assert not stacks.is_hidden_file(np.__file__)


def test_the_backward_of_a_library_whose_folder_begins_like_the_runtimes_is_its_own() -> None:
    captured: list[stacks.StackEntry] = []
    names = {"captured": captured, "capture": _captured, "found": stacks.Stacks()}
    for library in ("torch", "torchvision"):
        file = str(Path("/site", library, "ops.py"))
        exec(compile("captured.append(capture(found))", file, "exec"), names)

    engine = sys._getframe().f_code
    frozen = stacks.freeze_stacks(captured, engine.__eq__, lambda _: False, str(Path("/site", "torch")))
    assert frozen.has_own_backward.tolist() == [False, True]


@pytest.mark.parametrize(
    ("parts", "is_standard"),
    [
        (("asyncio", "events.py"), True),
        # Where a whole environment is Python's own, as conda makes one, packages lie inside.
        (("site-packages", "torch", "functional.py"), False),
        (("dist-packages", "torch", "functional.py"), False),
    ],
)
def test_a_package_inside_the_folder_of_the_standard_library_is_not_part_of_it(
    parts: tuple[str, ...], is_standard: bool
) -> None:
    file = str(Path(sysconfig.get_path("stdlib"), *parts))
    assert stacks.is_standard_library(file) is is_standard


def test_a_folder_that_begins_like_another_is_not_that_folder() -> None:
    standard = sysconfig.get_path("stdlib")
    assert not stacks.is_standard_library(str(Path(f"{standard}t", "queue.py")))
