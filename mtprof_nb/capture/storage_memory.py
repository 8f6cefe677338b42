"""Memory that MindTorch v2 and Candle hold: a device's own counter, and on the CPU the buffers of tensor storages."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mtprof_nb.capture.patches import Patches


class StorageMemory:
    """Bytes held now.

    On the CPU a storage keeps a numpy buffer: counted are those of storages made since the start, each once however
    many share it. What a kernel allocates and frees for itself is not among them.
    """

    def __init__(self, package: Any, cpu_storage: type) -> None:
        self._package = package
        self._cpu_storage = cpu_storage
        self._held = 0
        #: How many living storages keep each buffer, by its identity.
        self._sharers: dict[int, int] = {}
        self._releases: dict[int, weakref.ref[Any]] = {}
        # Entered again where the collector releases a storage in the middle.
        self._lock = threading.RLock()

    def install(self, patches: Patches) -> None:
        """Count from now on."""

        def counting(original: Callable[..., None]) -> Callable[..., None]:
            def init(storage: Any, array: Any, *args: Any, **kwargs: Any) -> None:
                original(storage, array, *args, **kwargs)
                self._count(storage, array)

            return init

        patches.replace(self._cpu_storage, "__init__", counting)

    def forget(self) -> None:
        """Count no more. In a forked child another thread may have held the lock, and will never give it back."""
        self._lock = threading.RLock()
        self._releases.clear()

    def held(self, device: Any) -> int:
        """Bytes on `device`, -1 where nobody counts them."""
        kind = getattr(device, "type", device)
        if kind == "cpu":
            return self._held
        try:
            return int(getattr(self._package, kind).memory_allocated())
        except Exception:  # a device that cannot tell, or is failing: its own error is the user's to see
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
        with self._lock:
            sharers = self._sharers.get(key, 0)
            self._sharers[key] = sharers + 1
            self._held += 0 if sharers else nbytes
            self._releases[id(storage)] = weakref.ref(storage, partial(self._release, id(storage), key, nbytes))

    def _release(self, storage: int, key: int, nbytes: int, _reference: Any) -> None:
        with self._lock:
            self._releases.pop(storage, None)
            self._sharers[key] -= 1
            if not self._sharers[key]:
                del self._sharers[key]
                self._held -= nbytes
