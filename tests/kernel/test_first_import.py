"""The first cell of a fresh kernel imports torch itself: from then on it has samples, and a note names the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mtprof_nb.capture.native.recorder_loading import why_not

if TYPE_CHECKING:
    from conftest import Kernel

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no native recorder: {why_not()}")

CELL = """%%mtprofile {flags}
import torch
import time

def compute():
    end = time.thread_time() + 0.4
    total = 0
    while time.thread_time() < end:
        total += sum(number * number for number in range(20_000))
    return torch.ones(2) + total

compute()
"""
FUNCTIONS = "[(row.function, row.total_ns) for row in __import__('mtprof_nb').last().functions()]"
NOTES = "list(__import__('mtprof_nb').last().summary().notes)"


def test_functions_after_the_import_have_samples_and_a_note_says_what_is_missing(new_kernel: Kernel) -> None:
    new_kernel.run("%load_ext mtprof_nb")
    assert new_kernel.value("'torch' in __import__('sys').modules") is False
    new_kernel.run(CELL.format(flags=""))

    functions = dict(new_kernel.value(FUNCTIONS))
    (note,) = new_kernel.value(NOTES)
    # The function computes for 400 ms. On a busy machine the first samples may come late.
    assert functions["compute"] > 100e6
    assert note.startswith("PyTorch was imported ")
    assert note.endswith(" s after the recording began: Python functions of the time before were not recorded")
    # The import belongs to no function.
    assert functions["(unknown)"] > 100e6


def test_without_samples_there_is_no_function_and_no_note(new_kernel: Kernel) -> None:
    new_kernel.run("%load_ext mtprof_nb")
    new_kernel.run(CELL.format(flags="--no-python"))

    assert "compute" not in dict(new_kernel.value(FUNCTIONS))
    assert new_kernel.value(NOTES) == []


def test_samples_that_are_asked_for_begin_with_the_cell_and_a_note_says_how_they_are_taken(new_kernel: Kernel) -> None:
    new_kernel.run("%load_ext mtprof_nb")
    new_kernel.run(CELL.format(flags="--python"))

    assert "compute" in dict(new_kernel.value(FUNCTIONS))
    (note,) = new_kernel.value(NOTES)
    assert note.startswith("Samples of Python code were taken without the native recorder")
