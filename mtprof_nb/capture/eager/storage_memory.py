"""Memory that MindTorch v2 and Candle hold: a device's own counter, and on the CPU the buffers of tensor storages."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from mtprof_nb.capture.patches import Patches


class _Kept(weakref.ref[Any]):
    """A storage that lives, and the buffer it keeps. `identity` is the reference's own."""

    __slots__ = ("identity", "key", "nbytes")
    identity: int
    key: int
    nbytes: int


class StorageMemory:
    """Bytes held now.

    On the CPU a storage keeps a numpy buffer. The buffers of storages that were made since the start are counted, each
    once however many storages share it. Memory that a kernel allocates and frees itself is not counted.
    """

    def __init__(self, package: Any, cpu_storage: type) -> None:
        self._package = package
        self._cpu_storage = cpu_storage
        self._held = 0
        #: How many living storages keep each buffer, by its identity.
        self._sharers: dict[int, int] = {}
        #: Storages that live, by the identity of the reference.
        self._living: dict[int, _Kept] = {}
        #: Storages that were released and are still counted. The weak reference's callback is a C function: in Python
        #: code a pending interrupt would be raised there, and Python drops exceptions of such a callback.
        self._released: deque[_Kept] = deque()
        # Reentrant: a signal handler of the user's may make a storage at any moment.
        self._lock = threading.RLock()

    def install(self, patches: Patches) -> None:
        def counting(original: Callable[..., None]) -> Callable[..., None]:
            def init(storage: Any, array: Any, *args: Any, **kwargs: Any) -> None:
                original(storage, array, *args, **kwargs)
                self._count(storage, array)

            return init

        patches.replace(self._cpu_storage, "__init__", counting)

    def forget(self) -> None:
        """Count no more. The lock is new: in a forked child another thread may hold the old one for ever."""
        self._lock = threading.RLock()
        self._living.clear()
        self._released.clear()

    def held(self, device: Any) -> int:
        """Bytes held on `device`, -1 where they are not known."""
        kind = getattr(device, "type", device)
        if kind == "cpu":
            if self._released:
                with self._lock:
                    self._take_off_released()
            return self._held
        try:
            return int(getattr(self._package, kind).memory_allocated())
        except Exception:  # no such counter, or a failing device, whose error the user's ops will raise
            return -1

    def _count(self, storage: Any, array: Any) -> None:
        buffer = array
        while isinstance(getattr(buffer, "base", None), np.ndarray):
            buffer = buffer.base
        key = id(buffer)
        try:
            nbytes = int(buffer.nbytes)
        except Exception:  # no array: the storage is the user's, and so is what it takes
            return
        kept = _Kept(storage, self._released.append)
        kept.identity, kept.key, kept.nbytes = id(kept), key, nbytes
        with self._lock:
            # First, because the buffer may have the address of a released one.
            self._take_off_released()
            sharers = self._sharers.get(key, 0)
            # No calls from here on, so that no signal handler runs in between: it is counted whole or not at all.
            self._living[kept.identity] = kept
            self._sharers[key] = sharers + 1
            self._held += 0 if sharers else nbytes

    def _take_off_released(self) -> None:
        while self._released:
            kept = self._released[0]
            # No calls here either.
            del self._living[kept.identity]
            self._sharers[kept.key] -= 1
            if not self._sharers[kept.key]:
                del self._sharers[kept.key]
                self._held -= kept.nbytes
            self._released.popleft()
