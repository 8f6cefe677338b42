"""Loads the compiled recorder where there is a fitting one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from mtprof_nb.capture.native.recorder_cache import SWITCH, RecorderFiles, cache_folder, check_private, is_switched_off
from mtprof_nb.capture.native.recorder_key import key_of_installed_torch
from mtprof_nb.errors import warn

_MODULE = "_mtprof_recorder"
_loaded: ModuleType | None = None
#: Binaries that could not be imported, with the time of their build, and why.
_refused: dict[tuple[Path, int], str] = {}


def recorder() -> ModuleType | None:
    """The native recorder; None where torch is not imported, no fitting binary exists, or it is switched off."""
    loaded = _find()
    return loaded if isinstance(loaded, ModuleType) else None


def why_not() -> str | None:
    """Why `recorder()` returns None, with the remedy; None if it returns the recorder."""
    loaded = _find()
    return loaded if isinstance(loaded, str) else None


def import_binary(path: str | Path) -> ModuleType:
    """The extension module in the file `path`; `ImportError` if it does not fit the torch that is imported."""
    loader = ExtensionFileLoader(_MODULE, str(path))
    spec = ModuleSpec(_MODULE, loader, origin=str(path))
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _find() -> ModuleType | str:
    global _loaded
    if is_switched_off():
        return f"the environment variable {SWITCH} is 'off'"
    if "torch" not in sys.modules:
        return "torch is not imported"
    if _loaded is None:
        module = _load()
        if isinstance(module, str):
            return module
        _loaded = module
    return _loaded


def _load() -> ModuleType | str:
    key = key_of_installed_torch()
    if key is None:
        return "the version of the imported torch is unknown"
    try:
        files = RecorderFiles(cache_folder(), key.name)
        if not files.binary.exists():
            return _why_missing(files)
        check_private(files.folder)
        if files.is_built():
            return _import_once(files.binary)
        if files.remove_damaged():
            warn("the native recorder's file was damaged, and is removed: mtprof_nb.build_recorder() builds it again")
        return _why_missing(files)
    except (OSError, RuntimeError) as error:
        return str(error)


def _import_once(binary: Path) -> ModuleType | str:
    built = (binary, binary.stat().st_mtime_ns)
    if reason := _refused.get(built):
        return reason
    try:
        module = import_binary(binary)
    except Exception as error:
        reason = f"it cannot be loaded ({error}): mtprof_nb.build_recorder(force=True) builds it again"
        _refused[built] = reason
        return reason
    with suppress(OSError):
        os.utime(binary)  # the time of its last use
    return module


def _why_missing(files: RecorderFiles) -> str:
    if files.is_being_built():
        return "it is being built"
    with suppress(OSError):
        return files.failure.read_text(encoding="utf-8")
    return "it has not been built: mtprof_nb.build_recorder() builds it"
