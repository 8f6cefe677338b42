"""One recording around one cell or statement: from the call in the cell's first line to the panel under its output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from mtprof_nb.capture.imports import RuntimeWatcher
from mtprof_nb.capture.interrupts import run_all
from mtprof_nb.capture.machine.available_memory import give_back
from mtprof_nb.capture.marks.marked_cell import marker_of
from mtprof_nb.capture.schedule import RECORDING
from mtprof_nb.capture.source_texts import cell_label, running_cell_number
from mtprof_nb.cell.boundary import Boundary
from mtprof_nb.cell.default_flags import marks_functions
from mtprof_nb.cell.progress import RecordingLine
from mtprof_nb.errors import HookError, collected_warnings, legible_lines
from mtprof_nb.model.trace import Recorded
from mtprof_nb.profiler import active, last, profile
from mtprof_nb.views.frontend import has_user

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell


def print_note(line: str) -> None:
    """Print one line for the user to stderr."""
    print(legible_lines(f"mtprof_nb: {line}"), file=sys.stderr)  # noqa: T201


@dataclass(frozen=True)
class CellEnding:
    """How a recording ended: the failure of the cell, if any, and notes about the profile."""

    outcome: str | None
    notes: tuple[str, ...]
    #: Whether the cell was asked to publish nothing.
    is_silent: bool


class CellRecording:
    """Records from `begin` to `end`; then `deliver` is called once. `UsageError` for options that cannot work."""

    def __init__(
        self,
        ip: InteractiveShell,
        options: dict[str, Any],
        deliver: Callable[[profile, CellEnding], None],
        if_cheap: Recorded | None = None,
    ) -> None:
        self._ip = ip
        self._deliver = deliver
        #: The cell that is running now. A cell that it runs itself is another one.
        self._cell: ExecutionResult | None = ip.displayhook.exec_result
        self._is_silent = self._cell is not None and bool(self._cell.info.silent)
        self._notes: list[str] = []
        self._prof = prof = self._profile(options)
        self._marks_functions = marks_functions(options)
        if if_cheap is not None:
            prof.record_if_cheap(if_cheap)
        prof.panel_follows = True
        self._line = RecordingLine(ip, prof.name, lambda: prof.step_num, prof.so_far) if has_user(ip) else None
        self._watcher = RuntimeWatcher(lambda: self._prof.attach_new_runtimes(), self._notes)
        self._boundary = Boundary(ip, self._cell, self.end)
        marker = marker_of(ip)
        self._marks = marker.take() if marker is not None else None
        self._is_recording = False
        self._is_stopping = False
        self._is_complete = False
        #: Whether an interrupt came while the recording ended or was delivered.
        self._is_interrupted = False

    def begin(self) -> None:
        """Start recording. `UsageError` if the wanted hook is missing; else the cell runs, recorded or not."""
        # Before the start, so that an interrupt at any moment ends the recording before its traceback is drawn: with
        # stacks, Kineto would record every Python call of the drawing, and need many seconds to read them.
        self._is_recording = True
        self._boundary.install()
        if self._marks is not None:
            self._prof.annotate = self._marks.apply
        try:
            with collected_warnings(self._notes):
                self._prof.start()
        except HookError as error:
            self._give_up()
            raise UsageError(str(error)) from None
        except Exception as error:
            self._give_up()
            print_note(f"this cell is not profiled: {error}")
            if self._marks is not None:
                self._marks.idle()
            return
        if self._marks is not None:
            records = lambda: self._is_recording and self._prof.current_action in RECORDING  # noqa: E731
            self._marks.start(self._marks_functions, records)
        self._watcher.install()
        if self._line is not None:
            self._line.start()

    def _give_up(self) -> None:
        """Undo the preparation of a recording that could not start."""
        self._boundary.remove()
        self._is_recording = False

    def end(self) -> profile | None:
        """Stop recording, even after failures. Returns the profile, or None if nothing was recorded."""
        if self._is_recording:
            if self._marks is not None:
                self._marks.leave()
            try:
                self._leave()
            except (Exception, KeyboardInterrupt) as error:
                self._is_interrupted |= isinstance(error, KeyboardInterrupt)
                with suppress(Exception):  # what is left to do, above all where an interrupt came early
                    self._leave()
                if not self._is_complete:
                    name = type(error).__name__
                    print_note(f"the recording could not be finished ({name}: {error}); the cell is not affected")
            self._is_recording = False
        return self._prof if self._is_complete else None

    def _leave(self) -> None:
        """Stop everything that runs; a second call does what the first one did not get to."""
        run_all(
            self._boundary.remove,
            self._watcher.remove,
            self._stop,
            self._marks.stop if self._marks is not None else None,
            self._line.stop if self._line is not None else None,
        )

    def _stop(self) -> None:
        if active() is not self._prof:
            # The cell may have stopped it itself.
            self._is_complete |= last() is self._prof and not self._is_stopping
            return
        self._is_stopping = True
        try:
            if self._line is not None:
                self._line.reading()
        finally:
            with collected_warnings(self._notes):
                self._prof.stop()
        self._is_complete = True

    def run(self, body: Callable[[], Any]) -> Any:
        """The value of `body`, recorded. Where it fails or is interrupted, the profile follows the traceback."""
        __tracebackhide__ = True
        try:
            self.begin()
            value = body()
            self._finish(None)
            self._pass_on_interrupt()
        except BaseException as error:
            self.end()
            self.deliver_after_cell(outcome_of(error))
            self._pass_on_interrupt()
            raise
        return value

    def _pass_on_interrupt(self) -> None:
        """Raise the interrupt that came at the end: code of the user that follows must not run."""
        __tracebackhide__ = True
        is_interrupted, self._is_interrupted = self._is_interrupted, False
        if is_interrupted:
            raise KeyboardInterrupt

    def deliver_after_cell(self, outcome: str | None = None) -> None:
        """End with the running cell at the latest, and deliver after its traceback or its last value."""
        event = "post_execute" if self._is_silent else "post_run_cell"
        file = self._file_of_cell()

        def cell_ended(result: ExecutionResult | None = None) -> None:
            if result is not None and self._cell is not None and result.info.raw_cell != self._cell.info.raw_cell:
                if file == self._file_of_cell():
                    return
                # A later cell ended: an interrupt kept IPython from reporting the end of ours.
                self._deliver = _deliver_nothing
            cell = result or self._cell
            error = cell and (cell.error_before_exec or cell.error_in_exec)
            self._finish(outcome or outcome_of(error))
            self.take()
            # Last: if an interrupt prevents the steps above, they run after the next cell.
            self._ip.events.unregister(event, cell_ended)

        self._ip.events.register(event, cell_ended)

    def _file_of_cell(self) -> str | None:
        """The file name of the running cell: of the outermost frame in the user's namespace."""
        names, file = self._ip.user_global_ns, None
        for frame, _ in walk_stack(sys._getframe(1)):
            file = frame.f_code.co_filename if frame.f_globals is names else file
        return file

    def _finish(self, outcome: str | None) -> None:
        """End and deliver. A failure prints one line and does not change the outcome of the cell."""
        try:
            prof = self.end()
            self._forget_marks()
            if prof is not None:
                prof.panel_follows = False
                deliver, self._deliver = self._deliver, _deliver_nothing
                deliver(prof, CellEnding(outcome, tuple(self._notes), self._is_silent))
        except (Exception, KeyboardInterrupt) as error:
            self._is_interrupted |= isinstance(error, KeyboardInterrupt)
            self.end()
            self._forget_marks()
            print_note(f"the profile could not be delivered ({type(error).__name__}: {error}); mtprof_nb.last() has it")

    def take(self) -> profile | None:
        """Return the delivered profile and forget it, None without one.

        This object is in cycles, which would keep the profile until the garbage collector runs.
        """
        prof = self.end()
        if prof is not None:
            self._is_complete = False
            del self._prof, self._line
            give_back(len(prof.trace))
        return prof

    def _forget_marks(self) -> None:
        if self._marks is not None:
            self._marks.remove()
            self._prof.annotate = self._marks = None

    def _profile(self, options: dict[str, Any]) -> profile:
        name = options["name"] or cell_label(running_cell_number(self._ip))
        try:
            with collected_warnings(self._notes):
                return profile(**{**options, "name": name})
        except ValueError as error:
            raise UsageError(str(error)) from None


def _deliver_nothing(*_: Any) -> None:
    """Delivers nothing."""


def outcome_of(error: BaseException | None) -> str | None:
    """How a cell failed; None for a cell that did not fail."""
    if error is None:
        return None
    name = type(error).__name__
    if name in ("KeyboardInterrupt", "CancelledError"):
        return "interrupted: recorded until then"
    return f"the cell failed with {name}: recorded until then"
