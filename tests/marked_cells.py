"""Cells run in an IPython shell of their own, with marks or without, and ops that know who called them."""

import ast
import atexit
import builtins
import contextlib
import io
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType

import numpy as np
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traces import event, make_trace

from mtprof_nb.capture.marks.marked_cell import CellMarker, Marks
from mtprof_nb.model.trace import SourceLine, Trace


@dataclass
class Op:
    """A call of `op(name)`: when and where, as the interpreter itself tells it."""

    name: str
    time_ns: int
    thread: int
    file: str
    line: int


@dataclass
class Run:
    """The outcome of one cell: its ops, its output, its exception, and its trace with lines where it was marked."""

    ops: list[Op]
    output: str
    result: ExecutionResult
    names: set[str]
    note: str = ""
    trace: Trace | None = None

    @property
    def lines(self) -> list[int | None]:
        """The line that the marks give each op."""
        return [place.line if place else None for place in self.places]

    @property
    def places(self) -> list[SourceLine | None]:
        assert self.trace is not None
        assert self.trace.line is not None
        return [self.trace.lines[line] if line >= 0 else None for line in self.trace.line.tolist()]

    @property
    def true_lines(self) -> list[int]:
        """The line that each op was called from."""
        return [op.line for op in self.ops]


@dataclass
class Shell:
    """One IPython shell. A cell whose first line is `begin()` is marked from there on."""

    ip: InteractiveShell
    marker: CellMarker = field(init=False)
    ops: list[Op] = field(default_factory=list)
    marks: Marks | None = None
    #: Whether Python is asked for the lines of functions without marks.
    records_ops: Callable[[], bool] = lambda: True

    def __post_init__(self) -> None:
        self.marker = CellMarker(self.ip, lambda tree: bool(tree.body) and ast.unparse(tree.body[0]) == "begin()")
        # An op is nobody's source line.
        code = Shell.op.__code__.replace(co_filename="<string>")
        self.ip.user_ns.update(op=MethodType(FunctionType(code, globals(), "op", ("",)), self), begin=self.begin)

    def op(self, name: str = "") -> int:
        """Stands for a tensor op."""
        caller = sys._getframe(1)
        code = caller.f_code
        self.ops.append(Op(name, time.perf_counter_ns(), threading.get_native_id(), code.co_filename, caller.f_lineno))
        return 1

    def begin(self) -> None:
        """Stands for the call in a profiled cell's first line."""
        if self.marker in self.ip.ast_transformers:
            self.marks = self.marker.take()
            self.marks.start(records_ops=self.records_ops)

    def run(self, cell: str, *, marked: bool = True) -> Run:
        """Run `cell` below a first line `begin()`; line numbers are those of `cell`, counted from 2."""
        self.ops.clear()
        before = set(self.ip.user_ns)
        printed = io.StringIO()
        if marked:
            self.marker.install()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), printed_warnings():
                result = self.ip.run_cell("begin()\n" + cell, store_history=True)
        finally:
            self.marker.remove()
        names = set(self.ip.user_ns) - before
        finished = Run(list(self.ops), printed.getvalue(), result, names)
        if marked and self.marks is not None:
            self._finish(finished, self.marks)
        return finished

    def _finish(self, run: Run, marks: Marks) -> None:
        marks.stop()
        rows = [event(op.name, op.time_ns, op.time_ns, thread=op.thread) for op in run.ops]
        trace = make_trace(rows)
        run.trace = replace(trace, **marks.apply(trace, np.asarray))
        run.note = marks.note
        marks.remove()
        self.marks = None


@contextlib.contextmanager
def printed_warnings() -> Iterator[None]:
    """Every warning as a printed line, as often as it is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_, **__: print(category.__name__, message)
        yield


@contextlib.contextmanager
def new_shell() -> Iterator[Shell]:
    """A shell without history or config; what it changes in this process is put back."""
    kept = sys.displayhook, sys.excepthook, sys.modules.get("__main__"), dict(vars(builtins))
    ip = InteractiveShell(colors="nocolor")
    ip.history_manager.enabled = False
    try:
        yield Shell(ip)
    finally:
        atexit.unregister(ip.atexit_operations)
        ip.atexit_operations()
        sys.displayhook, sys.excepthook = kept[:2]
        sys.modules["__main__"] = kept[2]
        for name in vars(builtins).keys() - kept[3].keys():
            delattr(builtins, name)
