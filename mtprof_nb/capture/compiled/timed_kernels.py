"""Times the kernels that inductor compiled from C++, which torch's dispatcher does not call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, ModuleType
from typing import Any

from mtprof_nb.capture.patches import Patches
from mtprof_nb.capture.torch_private.inductor_code import loaded_wrappers, replace_loader

#: How the names of such kernels begin in the modules that call them.
_KERNELS = "cpp_"


class TimedKernels:
    """Puts functions that the recorder times in the place of kernels, from `install` to `remove`.

    The modules look their kernels up by name at each call. A kernel that other code has replaced
    meanwhile stays as it is.
    """

    def __init__(self, timed: Callable[[Any, str], Any]) -> None:
        self._timed = timed
        self._patches = Patches()
        self._is_installed = False

    def install(self) -> None:
        self._is_installed = True
        replace_loader(self._patches, self._replace)
        for module in loaded_wrappers():
            self._replace(module)

    def remove(self) -> None:
        """Put all kernels back; a second call does nothing."""
        self._is_installed = False
        self._patches.undo()

    def _replace(self, module: ModuleType) -> None:
        if not self._is_installed:
            return
        for name, value in list(vars(module).items()):
            if name.startswith(_KERNELS) and type(value) is BuiltinFunctionType:
                self._patches.replace(module, name, partial(self._make, name))

    def _make(self, name: str, kernel: Any) -> Any:
        return self._timed(kernel, name)
