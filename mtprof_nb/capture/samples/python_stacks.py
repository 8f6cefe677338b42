"""The Python stack at an op: interned while recording, turned into files and lines when the recording is over."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

import numpy as np

from mtprof_nb.building.interning import distinct_objects
from mtprof_nb.capture.registry import HOOK_KINDS
from mtprof_nb.model.trace import Bool, Frame, Int32, StackInterner, StackTree

#: Packages that run the user's cells, and threads of their own.
_NOTEBOOK = ("IPython", "ipykernel", "jupyter_client", "traitlets", "tornado", "debugpy")
#: Modules and packages whose frames are hidden: the profiler, code that a runtime runs between an op and a hook, and
#: code of a notebook or of Python that calls the user's.
_HIDDEN = (
    "mtprof_nb",
    *(module for kind in HOOK_KINDS.values() for module in kind.hidden_modules),
    *_NOTEBOOK,
    *("asyncio", "threading", "concurrent.futures", "runpy"),
)
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_SITE_PACKAGES = ("site-packages", "dist-packages")
_STATEMENT_RUNNER = str(Path(__file__).parents[2] / "cell" / "statement.py")
#: The outermost file of a kernel. It runs as `__main__`, so that it is not in `sys.modules` by its name.
_LAUNCHER = "ipykernel_launcher.py"


@lru_cache(maxsize=65536)
def is_hidden_file(filename: str) -> bool:
    """Whether frames of this file are left out of every stack."""
    if filename.startswith("<frozen ") or filename.endswith(_LAUNCHER):
        return True
    return any(_lies_in(filename, sys.modules.get(name)) for name in _HIDDEN)


@lru_cache(maxsize=65536)
def _runs_own_threads(filename: str) -> bool:
    """Whether this is a file of the profiler, or of the packages that run a notebook's cells and talk to its page."""
    owners = ("mtprof_nb", *_NOTEBOOK, "zmq")
    return filename.endswith(_LAUNCHER) or any(_lies_in(filename, sys.modules.get(name)) for name in owners)


def is_in_folder(filename: str, folder: str) -> bool:
    """Whether this file lies in `folder` or below it; one of `torchvision` does not lie in `torch`."""
    return filename.startswith(f"{folder}{os.sep}")


def is_standard_library(filename: str) -> bool:
    """Whether this file is Python's own. Installed packages are not, though they may lie below the same folder."""
    return is_in_folder(filename, _STANDARD_LIBRARY) and not any(part in filename for part in _SITE_PACKAGES)


def _lies_in(filename: str, module: ModuleType | None) -> bool:
    module_file: str | None = getattr(module, "__file__", None)
    if not module_file:
        return False
    if hasattr(module, "__path__"):
        return Path(module_file).parent in Path(filename).parents
    return filename == module_file


class StackEntry:
    """One frame of an interned stack. Entries form a tree whose root is the innermost end of every stack."""

    __slots__ = ("callers", "code", "inner", "instruction", "is_outermost")

    def __init__(self, code: CodeType | None, instruction: int, inner: StackEntry | None) -> None:
        self.code = code
        self.instruction = instruction
        self.inner = inner
        self.callers: dict[int, StackEntry] = {}
        self.is_outermost = code is not None and is_cell_runner(code.co_filename, code.co_name)


class Stacks:
    """Stacks of one recording. `capture` may be called from any thread."""

    def __init__(self) -> None:
        self._root = StackEntry(None, -1, None)

    def capture(self, frame: FrameType | None) -> StackEntry:
        """The stack from `frame` outwards. Keeps code objects, never a frame, so no local stays alive."""
        entry = self._root
        while frame is not None:
            code = frame.f_code
            instruction = frame.f_lasti
            # CPython keeps the instructions inside the code object: the sum is an address, unique while it lives.
            address = id(code) + instruction
            try:
                caller = entry.callers[address]
            except KeyError:
                caller = entry.callers.setdefault(address, StackEntry(code, instruction, entry))
            if caller.is_outermost:
                return caller
            entry = caller
            frame = frame.f_back
        return entry


def is_cell_runner(file: str, name: str) -> bool:
    """Whether this is IPython's function that runs a cell, or ours that runs a statement: no caller is of interest."""
    is_ipythons = name == "run_code" and Path(file).name == "interactiveshell.py"
    return is_ipythons or file == _STATEMENT_RUNNER


def running_cell() -> CodeType | None:
    """IPython's code that runs a cell, where this thread is running one: stacks end there."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not is_cell_runner(frame.f_code.co_filename, frame.f_code.co_name):
        frame = frame.f_back
    return None if frame is None else frame.f_code


def is_user_thread(file: str, name: str, outer: bool | None) -> bool | None:
    """Whether a thread that is in this function runs the user's code; None: not decided yet.

    The outermost frame that is not the standard library's decides. `outer` is the result for the
    frames around this one.
    """
    if is_cell_runner(file, name):
        return True
    if outer is not None or is_standard_library(file) or file.startswith("<frozen "):
        return outer
    return not _runs_own_threads(file)


def is_of_user_thread(entry: StackEntry | None) -> bool:
    """Whether this is a stack of a thread that runs the user's code, rather than the profiler's or a notebook's."""
    is_user: bool | None = None
    for code, _ in _outermost_first(entry):
        is_user = is_user_thread(code.co_filename, code.co_name, is_user)
    return is_user is not False


class FrozenStacks(NamedTuple):
    """Nodes of a `StackTree` for each event, -1 where there is none."""

    stack: Int32
    tree: StackTree
    #: Whether the user's Python runs between autograd's engine and the op: then the stack is the op's own.
    has_own_backward: Bool
    #: Whether a module's call is on the stack.
    is_in_module: Bool


def freeze_stacks(
    entries: Sequence[StackEntry | None],
    is_engine: Callable[[CodeType], bool],
    is_module: Callable[[CodeType], bool],
    runtime_folder: str,
) -> FrozenStacks:
    """The captured stacks as a `StackTree`.

    `is_engine` recognises the code that runs the backward pass, `is_module` the code that calls a module.
    """
    interner = StackInterner()
    position, once = distinct_objects(entries)
    nodes = [interner.stack(frames_of(entry)) for entry in once]
    own = [_has_own_backward(entry, is_engine, runtime_folder) for entry in once]
    inside = [any(is_module(code) for code, _ in _outermost_first(entry)) for entry in once]
    return FrozenStacks(
        is_in_module=np.array(inside, np.bool_)[position],
        stack=np.array(nodes, np.int32)[position],
        tree=interner.tree(),
        has_own_backward=np.array(own, np.bool_)[position],
    )


def frames_of(entry: StackEntry | None) -> list[Frame]:
    """The frames of a captured stack, outermost first, without the hidden ones; none for None."""
    return [
        Frame(code.co_filename, line_of(code, instruction), code.co_name)
        for code, instruction in _outermost_first(entry)
        if not is_hidden_file(code.co_filename)
    ]


def _outermost_first(entry: StackEntry | None) -> Iterator[tuple[CodeType, int]]:
    """The code of each frame, and its instruction. The root of the stacks stands for no frame."""
    while entry is not None and entry.code is not None:
        yield entry.code, entry.instruction
        entry = entry.inner


def _has_own_backward(entry: StackEntry | None, is_engine: Callable[[CodeType], bool], runtime_folder: str) -> bool:
    codes = [code for code, _ in _outermost_first(entry)]
    last_engine = max((row for row, code in enumerate(codes) if is_engine(code)), default=-1)
    return any(
        not is_hidden_file(code.co_filename) and not is_in_folder(code.co_filename, runtime_folder)
        for code in codes[last_engine + 1 :]
    )


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction; of one without a line, that of the instructions before it."""
    lines = [line for first, _, line in code.co_lines() if first <= instruction and line is not None]
    return lines[-1] if lines else code.co_firstlineno
