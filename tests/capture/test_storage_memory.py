"""Bytes held by storages, counted as they are made and released."""

import ctypes
import operator
import signal
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from mtprof_nb.capture.eager.storage_memory import StorageMemory
from mtprof_nb.capture.patches import Patches


class Storage:
    """Stands for a runtime's CPU storage."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


@pytest.fixture
def memory() -> Iterator[StorageMemory]:
    counting, patches = StorageMemory(SimpleNamespace(), Storage), Patches()
    counting.install(patches)
    yield counting
    patches.undo()
    counting.forget()


def test_a_buffer_is_held_until_the_last_storage_of_it_is_released(memory: StorageMemory) -> None:
    array = np.zeros(10, np.int8)
    first, second, other = Storage(array), Storage(array[2:]), Storage(np.zeros(5, np.int8))
    held = [memory.held("cpu")]
    del first
    held.append(memory.held("cpu"))
    del second
    held.append(memory.held("cpu"))
    del other
    assert [*held, memory.held("cpu")] == [15, 15, 5, 0]


def test_a_buffer_at_the_address_of_a_released_one_counts_anew(memory: StorageMemory) -> None:
    array = np.zeros(10, np.int8)
    for _ in range(3):
        del Storage(array).array  # released at once, before anybody asks
    kept = Storage(array)
    assert (memory.held("cpu"), kept.array is array) == (10, True)


def test_an_interrupt_as_a_storage_is_released_arrives(memory: StorageMemory) -> None:
    held = [Storage(np.zeros(10, np.int8))]
    # A runtime's own C code: the signal comes inside of it, and so does the release.
    interrupt = partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        list(map(operator.call, [interrupt, held.clear]))
    assert memory.held("cpu") == 0
