"""Memory of storages in shared memory and in mapped files, which torch's CPU allocator does not give out."""

from __future__ import annotations

import weakref
from contextlib import suppress
from functools import partial, wraps
from typing import Any

from mtprof_nb.capture.patches import Patches

#: Methods of `torch.UntypedStorage`: these make a storage, as for a batch of a worker process.
_MAKERS = (
    "_new_using_fd_cpu",
    "_new_using_filename_cpu",
    "_new_shared_fd_cpu",
    "_new_shared_filename_cpu",
    "from_file",
)
#: And these move one to shared memory.
_MOVERS = ("_share_fd_cpu_", "_share_filename_cpu_")


class MappedStorages:
    """Notes such storages, and when they are released, from `install` to `remove`."""

    def __init__(self, torch: Any, recorder: Any) -> None:
        self._class = torch.UntypedStorage
        self._recorder = recorder
        self._patches = Patches()
        #: By the number under which it is noted. Storages live as long as their memory does, also without a name.
        self._held: dict[int, weakref.ref[Any]] = {}

    def install(self) -> None:
        for names, make in ((_MAKERS, self._maker), (_MOVERS, self._mover)):
            for name in names:
                if hasattr(self._class, name):
                    self._patches.replace(self._class, name, make)

    def remove(self) -> None:
        self._patches.undo()
        self._held.clear()

    def _maker(self, original: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            storage = original(*args, **kwargs)
            self._note(storage)
            return storage

        return staticmethod(make)

    def _mover(self, original: Any) -> Any:
        @wraps(original)
        def move(storage: Any, *args: Any, **kwargs: Any) -> Any:
            # Before it is moved: both memories are held while it is copied.
            number = None if storage.is_shared() else self._note(storage)
            try:
                return original(storage, *args, **kwargs)
            except BaseException:
                self._release(number)
                raise

        return move

    def _note(self, storage: Any) -> int | None:
        """The number of a storage that is not noted yet: an odd one, which no block of an allocator has."""
        with suppress(Exception):  # the program has its storage, whatever happens here
            number, nbytes = storage._cdata | 1, storage.nbytes()
            if nbytes and number not in self._held:
                self._held[number] = weakref.ref(storage, partial(self._release, number))
                self._recorder.note_memory(number, nbytes)
                return int(number)
        return None

    def _release(self, number: int | None, _storage: object = None) -> None:
        if number is not None and self._held.pop(number, None) is not None:
            self._recorder.note_memory(number, 0)
