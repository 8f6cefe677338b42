"""The lines under a running cell: how long it has been recorded, and what has cost most so far."""

from __future__ import annotations

import contextvars
import html
import linecache
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtprof_nb.analysis import units
from mtprof_nb.capture.hook import SoFar
from mtprof_nb.capture.interrupts import threads_without_signals
from mtprof_nb.errors import legible
from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import SourceLine

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

INTERVAL_S = 1.0
#: From here on, and as often, the slowest ops and lines are shown.
_LIVE_S = 2
#: How many of each are shown, and how much of a line's text.
_MOST, _MOST_LETTERS = 3, 70


class RecordingLine:
    """Lines that are shown after the first second, rewritten every second, and removed by `stop`."""

    def __init__(
        self,
        ip: InteractiveShell,
        label: str,
        steps: Callable[[], int],
        so_far: Callable[[], SoFar | None] = lambda: None,
    ) -> None:
        # The present publisher: while the cell captures its own output, `ip.display_pub` is another one.
        self._publisher: Any = ip.display_pub
        self._label = label
        self._steps = steps
        self._so_far = so_far
        self._costs: list[str] = []
        self._display_id = uuid.uuid4().hex
        self._doing = "recording"
        #: After how many seconds the recording was full; None while it goes on.
        self._full_s: float | None = None
        self._shown = False
        self._publishing = threading.Lock()
        self._stopped = threading.Event()
        self._began = time.monotonic()
        # The context carries the request to which a kernel attributes what is published.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="mtprof_nb recording", daemon=True)

    def start(self) -> None:
        """Start counting. Without threads, as in a browser's Python, there is no line."""
        with suppress(RuntimeError), threads_without_signals():
            self._thread.start()

    def reading(self) -> None:
        """Show that the recording is being read; at once, because no other thread runs while it is read."""
        self._doing = "reading what was recorded"
        if self._shown:
            self._show()

    def stop(self) -> None:
        """Remove the lines; nothing is published after this returns."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._shown:
            # An empty bundle would leave the line in nbclassic.
            self._publish({"text/plain": "", "text/html": ""})

    def _run(self) -> None:
        seconds = 0
        while not self._stopped.wait(INTERVAL_S):
            seconds += 1
            if seconds % _LIVE_S == 0:
                with suppress(Exception):  # a recording that ends at this moment has nothing to show
                    self._read(self._so_far())
            self._show()

    def _read(self, so_far: SoFar | None) -> None:
        self._costs = written(so_far)
        if so_far is not None and so_far.full_ns and self._full_s is None:
            self._full_s = time.monotonic() - self._began - (time.perf_counter_ns() - so_far.full_ns) / 1e9
            self._doing = f"stopped recording after {units.duration(max(self._full_s, 0) * 1e9)}, as it was full"

    def _show(self) -> None:
        elapsed_s = time.monotonic() - self._began
        elapsed = _elapsed(elapsed_s)
        steps = self._steps()
        rate = f" ({units.three_digits(steps / elapsed_s)} a second)" if self._costs else ""
        count = f", {units.plural(steps, 'step')}{rate}" if steps else ""
        lines = [*map(legible, (f"{self._label}: {self._doing}, {elapsed}{count}", *self._costs))]
        page = "<br>".join(f"<small>{html.escape(line)}</small>" for line in lines)
        self._publish({"text/plain": "\n".join(lines), "text/html": page})

    def _publish(self, bundle: dict[str, str]) -> None:
        with self._publishing:
            self._publisher.publish(bundle, {}, transient={"display_id": self._display_id}, update=self._shown)
            self._shown = True


def _elapsed(elapsed_s: float) -> str:
    minutes, seconds = divmod(max(int(elapsed_s), 0), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def written(so_far: SoFar | None) -> list[str]:
    """The slowest lines and ops so far, and the memory of the process, a line of text each."""
    if so_far is None or not so_far.ops:
        return []
    lines = [f"{units.duration(ns)}  {_source(line)}" for line, ns in so_far.lines[:_MOST]]
    ops = ", ".join(f"{name} {units.duration(ns)}" for name, ns in so_far.ops[:_MOST])
    memory = [f"memory of the process: {units.nbytes(so_far.resident_bytes)}"] if so_far.resident_bytes else []
    return [*lines, f"ops: {ops}", *memory]


def _source(line: SourceLine) -> str:
    """Where a line is, and its text."""
    text = linecache.getline(line.file, line.line).strip()
    shown = f"{text[:_MOST_LETTERS]}…" if len(text) > _MOST_LETTERS else text
    where = f"line {line.line}" if is_cell(line.file) else f"{Path(line.file).name}:{line.line}"
    return f"{where}  {shown}"
