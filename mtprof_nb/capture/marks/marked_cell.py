"""The marks of a cell, which show the line that was running: kept while the cell runs, replayed when it has ended."""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from mtprof_nb.capture.hook import EventTimes
from mtprof_nb.capture.marks import unmarking
from mtprof_nb.capture.marks.hot_functions import HotFunctions
from mtprof_nb.capture.marks.mark_buffers import IDLE, MarkBuffers, idle_mark, mark_cost_ns
from mtprof_nb.capture.marks.mark_hosts import Host, ShellHost
from mtprof_nb.capture.marks.mark_replay import marked_lines, with_end
from mtprof_nb.capture.marks.mark_transform import MARK, Places, mark_tree
from mtprof_nb.capture.samples.sampled_stacks import samples_within
from mtprof_nb.capture.torch_private.compiled_code import COMPILERS, is_compiled
from mtprof_nb.model.trace import Columns, Int64, Trace

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


#: How many functions a note names.
_NAMED = 3
#: The method of IPython's shell that compiles each statement of a cell alone.
_COMPILES_IN_PARTS = "run_cell_async"
#: Decorators after which a function's own code still runs as it is written.
_TRANSPARENT = frozenset(
    {
        *("abstractmethod", "classmethod", "property", "setter", "getter", "deleter", "staticmethod"),
        *("cache", "cached_property", "lru_cache", "register", "singledispatch", "singledispatchmethod", "wraps"),
        *("asynccontextmanager", "contextmanager", "final", "no_type_check", "overload", "override"),
        *("autocast", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"),
        *("custom_bwd", "custom_fwd", "once_differentiable", "profile", "record_function"),
    }
)
#: Names of compilers that read bytecode, and of libraries that send functions to other processes.
_READERS = frozenset(
    {
        *COMPILERS,
        *("cfunc", "guvectorize", "njit", "numba", "stencil", "vectorize"),
        *("cloudpickle", "dask", "dill", "joblib", "multiprocess", "Parallel", "pyspark", "ray"),
    }
)
_NO_READERS = {("re", "compile"), ("regex", "compile")}


@dataclass
class Unit:
    """Code whose lines are marked: the cell, or code that a magic inside it runs."""

    plain: ast.Module
    marked: ast.Module
    #: The file name it was compiled under, and its text; known when it begins to run.
    file: str = ""
    text: str = ""


class Marks:
    """The marks of one recording: `mark` the code, `start`, run it, `stop`, `apply` to the trace, `remove`."""

    def __init__(self, host: Host, in_functions: bool = True) -> None:
        """`in_functions`: also mark the lines of functions that the code defines."""
        self._host = host
        self._in_functions = in_functions
        self._thread = threading.get_ident()
        self._places = Places()
        self._units: list[Unit] = []
        self._notes: dict[str, None] = {}
        self._buffers: MarkBuffers | None = None
        self._hot: HotFunctions | None = None
        self._plain_codes: dict[int, dict[CodeType, CodeType]] = {}
        #: Names of functions that were unmarked while the cell ran.
        self._unmarked: dict[str, None] = {}
        self._records_ops: Callable[[], bool] = lambda: True
        self._is_installed = False
        #: By `perf_counter_ns`: when the recording began, and when the code of the cell had run.
        self._began_ns = 0
        self._left_ns: int | None = None

    @property
    def note(self) -> str:
        """Why some lines are not marked, "" where all are."""
        limit = self._buffers.note if self._buffers is not None else ""
        return "; ".join(filter(None, [*self._notes, self._note_of_unmarked(), limit]))

    @property
    def is_recording(self) -> bool:
        """Whether marks made by this thread are kept now."""
        mark = self._buffers.mark if self._buffers is not None else None
        return mark is not None and builtins.__dict__.get(MARK) is mark and threading.get_ident() == self._thread

    @property
    def has_code(self) -> bool:
        return bool(self._units)

    def mark(self, tree: ast.Module, skip: int = 0, is_compiled_in_parts: bool = False) -> ast.Module:
        """A copy of `tree` with marks after its first `skip` statements; where it fails, `tree` itself and a note."""
        marked = copy.deepcopy(tree)
        try:
            reader = _reader_of_functions(tree, self._host.namespace) if self._in_functions else None
            transparent = _transparent_decorators(tree) if self._in_functions and not reader else None
            mark_tree(marked, self._places, len(self._units), transparent, skip, is_compiled_in_parts)
            unmarking.compile_each(marked, "<marks>", self._host.flags)
        except Exception as error:
            # An error of the cell itself reads better without marks.
            self._notes[f"the {self._host.noun} runs without line marks ({type(error).__name__}: {error})"] = None
            return tree
        has_functions = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))
        if reader and has_functions:
            reason = f"because the {self._host.noun} uses {reader!r}: see the lines that call them"
            self._notes[f"no line marks inside functions, {reason}"] = None
        self._units.append(Unit(tree, marked))
        return marked

    def idle(self) -> None:
        """Install a mark that does nothing, so that marked code runs where nothing is recorded."""
        if MARK not in builtins.__dict__:
            builtins.__dict__[MARK] = idle_mark(self._open)
            self._is_installed = True

    def start(self, in_functions: bool = True, records_ops: Callable[[], bool] = lambda: True) -> None:
        """Keep marks from now on; called by the thread that runs the cell.

        `in_functions`: also mark the lines of functions, in code that is marked from now on.
        `records_ops` returns whether ops are recorded now: a schedule may wait.
        """
        self._in_functions = in_functions
        self._records_ops = records_ops
        self._thread = threading.get_ident()
        self._began_ns = time.perf_counter_ns()
        self._buffers = MarkBuffers(self._open, self._look)
        builtins.__dict__[MARK] = self._buffers.mark
        self._is_installed = True
        self._hot = HotFunctions(self._places, self._unmark, mark_cost_ns())
        self._buffers.measure_costs()
        self._buffers.own.append((self._began_ns, time.perf_counter_ns()))

    def leave(self) -> None:
        """Note that the code of the cell has run: time from now on is the profiler's."""
        if self._buffers is not None and self._left_ns is None:
            self._left_ns = time.perf_counter_ns()

    def stop(self) -> None:
        """Keep no more marks. Marked code may run on, and its marks do nothing."""
        if self._buffers is not None and builtins.__dict__.get(MARK) is self._buffers.mark:
            builtins.__dict__[MARK] = IDLE
        if self._buffers is not None:
            self._buffers.stop()

    def apply(self, trace: Trace, times_of: EventTimes) -> Columns:
        """The line that was running as each event of `trace` began, where it is known; the texts of units."""
        if self._buffers is None:
            return {}
        if self._left_ns is not None:
            self._buffers.own.append((self._left_ns, time.perf_counter_ns()))
        texts = {unit.file: unit.text for unit in self._units if unit.text}
        files = [unit.file for unit in self._units]
        lines = with_end(marked_lines(trace, self._buffers, self._places, files, times_of), texts)
        lines |= samples_within(replace(trace, samples=lines["samples"]), texts)
        return lines | {"sources": {**trace.sources, **texts}, "lines_note": self.note}

    def remove(self) -> None:
        """Give the cell's functions their plain code, remove the mark's name, and forget everything."""
        self.stop()
        if not self._is_installed:
            return
        self._is_installed = False
        unmarking.restore(self._plain_code())
        self._buffers, self._hot, self._units, self._plain_codes = None, None, [], {}

    def _plain_code(self) -> dict[CodeType, CodeType]:
        """For the code of every marked function, its code without marks."""
        for number, unit in enumerate(self._units):
            if number not in self._plain_codes and unit.file:
                codes = unmarking.plain_code(unit.marked, unit.plain, unit.file, self._host.flags)
                self._plain_codes[number] = codes
        return {code: plain for codes in self._plain_codes.values() for code, plain in codes.items()}

    def _look(self, pairs: Int64) -> None:
        # While a schedule waits, ops are not recorded, and faster.
        if self._hot is not None and self._records_ops():
            self._hot.look(pairs)

    def _unmark(self, scopes: set[int]) -> None:
        """Remove the marks from functions that are found, while the cell runs."""
        functions = self._places.functions
        others = (function for scope, function in enumerate(functions) if scope not in scopes)
        # Two functions of one name on one line cannot be distinguished, and keep their marks.
        wanted = {functions[scope] for scope in scopes}.difference(others)
        for function in unmarking.unmarked(self._host.namespace, wanted, self._plain_code()):
            self._unmarked[function.__qualname__] = None

    def _note_of_unmarked(self) -> str:
        names = list(self._unmarked)
        if not names:
            return ""
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        reason = "they are called often and run hardly any op, so their time now counts for the line that calls them"
        return f"line marks were removed from {', '.join(names[:_NAMED])}{rest}: {reason}"

    def _open(self, number: int) -> None:
        """Note file and text of a unit that begins to run. Marked code calls this."""
        # Before the first unit, the profiler and the shell run.
        is_first = not any(unit.file for unit in self._units)
        began_ns = self._began_ns if is_first else time.perf_counter_ns()
        unit = self._units[number]
        unit.file = sys._getframe(1).f_code.co_filename
        unit.text = self._text(unit.file) or _unparsed(unit.plain)
        # Compile it now: later it would take long in the middle of the cell.
        self._plain_code()
        if self._buffers is not None:
            self._buffers.own.append((began_ns, time.perf_counter_ns()))

    def _text(self, file: str) -> str:
        """The text to show for a file, "" where it is not known."""
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
        return "\n".join(self._host.shown(lines)) if lines else ""


def _reader_of_functions(tree: ast.AST, namespace: Mapping[str, Any]) -> str | None:
    """Name of a compiler or serializer in the cell that reads bytecode (torch.compile, numba, ray…), or None."""
    for name in _names(tree):
        if name in _READERS or (name in namespace and is_compiled(namespace[name])):
            return name
    return None


def _transparent_decorators(tree: ast.AST) -> frozenset[str]:
    """The decorators known to be harmless, and those that the cell defines itself."""
    defined = (node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return _TRANSPARENT.union(defined)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and (node.value.id, node.attr) in _NO_READERS):
                yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else ()
            yield from (part for alias in node.names for part in alias.name.split("."))


def _unparsed(tree: ast.Module) -> str:
    """The statements of `tree`, each on its line, where the text itself is not known."""
    lines: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            lines.setdefault(node.lineno, ast.unparse(node).split("\n", 1)[0])
    return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))


class CellMarker:
    """The AST transformer of a shell: marks each cell that begins a recording, and code that is run inside it."""

    def __init__(
        self,
        ip: InteractiveShell,
        is_profiled: Callable[[ast.Module], bool],
        marks_functions: Callable[[ast.Module], bool] = lambda _: True,
    ) -> None:
        """`marks_functions` decides for a profiled cell whether lines of its functions are marked too."""
        self._ip = ip
        self._is_profiled = is_profiled
        self._marks_functions = marks_functions
        self._pending: Marks | None = None
        self._current: Marks | None = None

    def install(self) -> None:
        self._ip.ast_transformers.append(self)

    def remove(self) -> None:
        if self in self._ip.ast_transformers:
            self._ip.ast_transformers.remove(self)

    def visit(self, tree: Any) -> Any:
        """Return the tree of a cell with marks, or as it is. IPython calls this for each cell."""
        if not isinstance(tree, ast.Module) or not tree.body:
            return tree
        is_profiled = self._is_profiled(tree)
        # The function of IPython that transforms the tree also compiles it.
        compiler = sys._getframe(2).f_code.co_name
        if self._current is not None and self._current.is_recording:
            if not self._is_to_be_marked(tree, compiler):
                return tree
            return self._current.mark(tree, int(is_profiled), compiler == _COMPILES_IN_PARTS)
        if is_profiled:
            self._pending = Marks(ShellHost(self._ip), self._marks_functions(tree))
            return self._pending.mark(tree, 1, compiler == _COMPILES_IN_PARTS)
        return tree

    def take(self) -> Marks:
        """The marks of the recording that begins now. Inside another recording, marks that do nothing."""
        marks, self._pending = self._pending or Marks(ShellHost(self._ip)), None
        if self._current is None or not self._current.is_recording:
            self._current = marks
        return marks

    def _is_to_be_marked(self, tree: ast.Module, compiler: str) -> bool:
        """False for code of `%timeit`, which would time the marks, and for a magic's argument on one line."""
        is_timed = compiler == "timeit"
        is_one_line = (tree.body[-1].end_lineno or 1) == 1
        return not is_timed and not (is_one_line and self._current is not None and self._current.has_code)


def marker_of(ip: InteractiveShell) -> CellMarker | None:
    """The transformer that is installed in `ip`."""
    return next((one for one in ip.ast_transformers if isinstance(one, CellMarker)), None)
