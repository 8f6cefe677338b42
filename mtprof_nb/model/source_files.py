"""The owner of a source file (the user, a library or a notebook cell), and its label."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path

from mtprof_nb.model.trace import Trace

#: Tensor runtimes by the name of their package; an entry of a hook adds its own.
RUNTIMES = {"torch": None, "mindtorch_v2": None, "candle": None}
_CELLS = ("<ipython-input", "<timed ")
#: Files that a kernel names after its process and the text of a cell.
_CELLS_OF_KERNELS = re.compile(r"[/\\](?:ipykernel|xpython)_\d+[/\\]\d+\.py$")
#: Files that `torch.compile` writes: into its cache, in folders named after two letters of the file, and for debugging.
_GENERATED = re.compile(r"[/\\]torchinductor_[^/\\]+[/\\](\w\w)[/\\]\w\1\w*\.py$|[/\\]torch_compile_debug[/\\]")

#: The part of a path before the name of an installed package, or of a module of Python's own, on any machine.
_LIBRARY = re.compile(r".*[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]")
#: The first part of the path of an installed package, or its only file.
_PACKAGE = re.compile(r".*[/\\](?:site-packages|dist-packages)[/\\]([^/\\]+?)(?:\.py)?(?:[/\\]|$)")


@lru_cache(maxsize=65536)
def is_user_file(file: str) -> bool:
    """Whether a file is a notebook cell or the user's own module.

    False for installed packages, runtimes, the standard library, and code that `torch.compile` generated.
    """
    if file.startswith("<"):
        return file.startswith(_CELLS)
    if _GENERATED.search(file) or _LIBRARY.match(file):
        return False
    # `torch.compile` names code that it makes after a module of torch, without a folder.
    return not file.startswith((*(f"{name}/" for name in _libraries()), *_library_folders()))


def _libraries() -> list[str]:
    """Packages that are nobody's own code wherever they are: people run these from their sources."""
    return ["mtprof_nb", *RUNTIMES]


def _library_folders() -> tuple[str, ...]:
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _libraries()]
    runtimes = [os.path.dirname(file) for file in files if file]  # noqa: PTH120 - compared as text
    standard = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    generated = os.path.abspath(cache) if cache else None  # noqa: PTH100 - compared as text
    return tuple(folder + os.sep for folder in (*runtimes, *standard, generated) if folder)


@lru_cache(maxsize=65536)
def library_of(file: str) -> str:
    """The installed package of a file, such as `torch`, or `Python` for the standard library; "" for the user's."""
    if is_user_file(file):
        return ""
    if _GENERATED.search(file):
        return "torch.compile"
    if package := _PACKAGE.match(file):
        return package[1]
    folders = re.split(r"[/\\]", file)
    return next((name for name in _libraries() if name in folders), "Python")


def is_cell(file: str) -> bool:
    """Whether a file is a notebook cell, whose name is another one in each session."""
    return file.startswith(_CELLS) or _CELLS_OF_KERNELS.search(file) is not None


def file_label(trace: Trace, file: str) -> str:
    """`Cell [3]` for a cell of the notebook that was recorded, the file's name otherwise."""
    return trace.cells.get(file) or (file if file.startswith("<") else Path(file).name)


def line_label(trace: Trace, file: str, line: int) -> str:
    """`Cell [3]:4`, or the name of the file, without its folder, and the line."""
    return f"{file_label(trace, file)}:{line}"


def source_location(trace: Trace, file: str, line: int) -> str:
    """`Cell [3]:4`; `torch/nn/functional.py:12` of an installed package; any other file with its whole path."""
    folder = _LIBRARY.match(file)
    return f"{trace.cells.get(file) or file[folder.end() if folder else 0 :]}:{line}"
