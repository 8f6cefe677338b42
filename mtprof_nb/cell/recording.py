"""One recording around one cell or statement: from the call in the cell's first line to the panel under its output."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from mtprof_nb.capture.hook import AUTO, HOOK_KINDS
from mtprof_nb.capture.imports import ImportWatcher
from mtprof_nb.capture.marks import marker_of
from mtprof_nb.cell.progress import RecordingLine, somebody_watches
from mtprof_nb.errors import HookError, MtprofWarning
from mtprof_nb.profiler import profile

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell


def tell(line: str) -> None:
    """One line for the user, beside the cell's own output."""
    print(f"mtprof_nb: {line}", file=sys.stderr)  # noqa: T201


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Warnings of this package as one line each, without the source line that raised them."""
    show = warnings.showwarning

    def showwarning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, MtprofWarning):
            tell(str(message))
        else:
            show(message, category, *where, **more)

    warnings.showwarning = showwarning
    try:
        yield
    finally:
        warnings.showwarning = show


def running_cell(ip: InteractiveShell) -> str:
    """What the cell that runs now is called."""
    cell: ExecutionResult | None = ip.displayhook.exec_result
    return f"Cell [{cell.execution_count}]" if cell is not None and cell.execution_count else "Cell"


class Recording:
    """Records from `begin` to `end`; then `deliver(outcome, is_silent)` is called once."""

    def __init__(self, ip: InteractiveShell, prof: profile, deliver: Callable[[str | None, bool], None]) -> None:
        self._ip = ip
        self._prof = prof
        self._deliver = deliver
        #: The cell that is running now; a cell that it runs in turn is another one.
        self._cell: ExecutionResult | None = ip.displayhook.exec_result
        self._thread = threading.get_ident()
        self._line = RecordingLine(ip, prof.name, lambda: prof.step_num) if somebody_watches(ip) else None
        self._watcher = ImportWatcher([HOOK_KINDS[name].runtime for name in AUTO], self._attach)
        marker = marker_of(ip)
        self._marks = marker.take() if marker is not None else None
        self._display: Callable[[Any], None] = sys.displayhook
        self._is_recording = False
        self._is_complete = False

    def begin(self) -> None:
        """Start. `UsageError` where the hook that was asked for cannot be had; else the cell runs, recorded or not."""
        # Before the start, so that an interrupt at any moment finds something to end.
        self._is_recording = True
        if self._marks is not None:
            self._prof.annotate = self._marks.apply
        try:
            self._prof.start()
        except HookError as error:
            self._is_recording = False
            raise UsageError(str(error)) from None
        except Exception as error:
            self._is_recording = False
            tell(f"this cell is not profiled: {error}")
            if self._marks is not None:
                self._marks.idle()
            return
        if self._marks is not None:
            self._marks.start()
        if not any(HOOK_KINDS[name].runtime_is_imported for name in AUTO):
            self._watcher.install()
        if self._ip.ast_node_interactivity != "all":
            sys.displayhook = self._end_before_display
        if self._line is not None:
            self._line.start()

    def end(self) -> profile | None:
        """Stop recording, whatever happened. The profile, or None where nothing was recorded."""
        if self._is_recording:
            self._is_recording = False
            if sys.displayhook == self._end_before_display:
                sys.displayhook = self._display
            self._watcher.remove()
            try:
                with told_in_one_line():
                    self._prof.stop()
                self._is_complete = True
            except (Exception, KeyboardInterrupt) as error:
                tell(f"the recording could not be finished ({type(error).__name__}: {error}); the cell is not affected")
            if self._marks is not None:
                self._marks.stop()
            if self._line is not None:
                self._line.stop()
        return self._prof if self._is_complete else None

    def run(self, body: Callable[[], Any]) -> Any:
        """The value of `body`, recorded. Where it fails, the profile follows the traceback."""
        __tracebackhide__ = True
        try:
            self.begin()
            value = body()
        except BaseException as error:
            self.end()
            self.deliver_after_cell(outcome_of(error))
            raise
        self._finish(None)
        return value

    def deliver_after_cell(self, outcome: str | None = None) -> None:
        """End with the running cell at the latest, and deliver after its traceback or its last value."""
        event = "post_execute" if self._is_silent else "post_run_cell"

        def cell_ended(result: ExecutionResult | None = None) -> None:
            if result is not None and self._cell is not None and result.info.raw_cell != self._cell.info.raw_cell:
                return
            self._ip.events.unregister(event, cell_ended)
            cell = result or self._cell
            error = cell and (cell.error_before_exec or cell.error_in_exec)
            self._finish(outcome or outcome_of(error))

        self._ip.events.register(event, cell_ended)

    @property
    def _is_silent(self) -> bool:
        """Whether the cell was asked to publish nothing."""
        return self._cell is not None and bool(self._cell.info.silent)

    def _finish(self, outcome: str | None) -> None:
        prof = self.end()
        if self._marks is not None:
            self._marks.remove()
            self._prof.annotate = self._marks = None
        if prof is not None:
            self._deliver(outcome, self._is_silent)

    def _end_before_display(self, value: Any = None) -> None:
        """Show the cell's last value; what its `repr` computes is not the cell's."""
        if value is not None and self._ip.displayhook.exec_result in (None, self._cell):
            self.end()
        self._display(value)

    def _attach(self, _runtime: str) -> None:
        if threading.get_ident() != self._thread:
            return
        try:
            self._prof.attach_new_runtimes()
        except Exception as error:
            tell(str(error))


def outcome_of(error: BaseException | None) -> str | None:
    """How a cell ended, where it did not end well."""
    if error is None:
        return None
    name = type(error).__name__
    if name in ("KeyboardInterrupt", "CancelledError"):
        return "interrupted: recorded until then"
    return f"the cell failed with {name}: recorded until then"
