"""Reports that a runtime has been imported, so that a recording can hook it before its first op."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from mtprof_nb.capture.registry import default_hooks


class ImportWatcher(MetaPathFinder):
    """Calls `imported(name)` right after each of `names` has been imported, in the thread that imported it."""

    def __init__(self, names: Sequence[str], imported: Callable[[str], None]) -> None:
        self._names = frozenset(names)
        self._imported = imported

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Watch no more; a second call does nothing."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The other finders' spec of a watched module, whose loader reports when it is done; None for others."""
        if fullname not in self._names:
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._report_after(spec.loader)
                return spec
        return None

    def _report_after(self, loader: Loader) -> None:
        """Report after the loader's own work, for this one import: the replaced method removes itself."""
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            load(module)
            self._imported(module.__name__)

        loader.exec_module = exec_module  # type: ignore[method-assign]


class RuntimeWatcher(ImportWatcher):
    """Calls `attach` when this thread imports a runtime of a default hook. A failure is added to `notes`."""

    def __init__(self, attach: Callable[[], None], notes: list[str]) -> None:
        super().__init__([kind.runtime for kind in default_hooks()], self._attach_here)
        self._attach, self._notes, self._thread = attach, notes, threading.get_ident()

    def install(self) -> None:
        """Watch, unless such a runtime is imported already."""
        if not any(kind.runtime_is_imported for kind in default_hooks()):
            super().install()

    def _attach_here(self, _runtime: str) -> None:
        if threading.get_ident() != self._thread:
            return
        try:
            self._attach()
        except Exception as error:
            self._notes.append(str(error))
