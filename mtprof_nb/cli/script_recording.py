"""One recording around one script, with line marks as in a cell."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from mtprof_nb.capture.imports import RuntimeWatcher
from mtprof_nb.capture.interrupts import run_all
from mtprof_nb.capture.marks.mark_hosts import ScriptHost
from mtprof_nb.capture.marks.marked_cell import Marks
from mtprof_nb.capture.schedule import RECORDING
from mtprof_nb.cell.default_flags import marks_functions
from mtprof_nb.errors import collected_warnings
from mtprof_nb.model.trace import Recorded
from mtprof_nb.profiler import active, profile


class ScriptRecording:
    """Records from `begin` to `end`. `prof` has the result, `notes` what was warned of."""

    def __init__(self, options: dict[str, Any], namespace: Mapping[str, Any], if_cheap: Recorded | None) -> None:
        self.notes: list[str] = []
        self.is_complete = False
        self._marks_functions = marks_functions(options)
        self._marks = Marks(ScriptHost(namespace), self._marks_functions)
        with collected_warnings(self.notes):
            self.prof = profile(**options)
        self._watcher = RuntimeWatcher(self.prof.attach_new_runtimes, self.notes)
        if if_cheap is not None:
            self.prof.record_if_cheap(if_cheap)
        self.prof.annotate = self._marks.apply

    def marked(self, tree: ast.Module) -> ast.Module:
        """The syntax tree of the script with line marks."""
        return self._marks.mark(tree)

    def begin(self) -> None:
        """Start recording; `HookError` if the wanted hook is missing."""
        with collected_warnings(self.notes):
            self.prof.start()
        self._marks.start(self._marks_functions, lambda: self.prof.current_action in RECORDING)
        self._watcher.install()

    def end(self) -> None:
        """Stop recording. A failure is a note, and leaves `is_complete` false."""
        self._marks.leave()
        try:
            run_all(self._watcher.remove, self._stop, self._marks.stop)
            self.is_complete = True
        except Exception as error:
            self.notes.append(f"the recording could not be finished ({type(error).__name__}: {error})")

    def _stop(self) -> None:
        # The script may have stopped it itself.
        if active() is self.prof:
            with collected_warnings(self.notes):
                self.prof.stop()
