"""The line under a running cell that says how long it has been recorded; it disappears with the recording."""

from __future__ import annotations

import contextvars
import html
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

INTERVAL_S = 1.0


class RecordingLine:
    """A line that is shown after the first second, rewritten every second, and removed by `stop`."""

    def __init__(self, ip: InteractiveShell, label: str, steps: Callable[[], int]) -> None:
        # The present publisher: while the cell captures its own output, `ip.display_pub` is another one.
        self._publisher: Any = ip.display_pub
        self._label = label
        self._steps = steps
        self._display_id = uuid.uuid4().hex
        self._doing = "recording"
        self._shown = False
        self._publishing = threading.Lock()
        self._stopped = threading.Event()
        self._began = time.monotonic()
        # The context carries the request to which a kernel attributes what is published.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="mtprof_nb recording", daemon=True)

    def start(self) -> None:
        """Start counting. Without threads, as in a browser's Python, there is no line."""
        with suppress(RuntimeError):
            self._thread.start()

    def reading(self) -> None:
        """Say that the recording is being read; at once, because no other thread runs while it is read."""
        self._doing = "reading what was recorded"
        if self._shown:
            self._say()

    def stop(self) -> None:
        """Remove the line; nothing is published after this returns."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._shown:
            self._publish({})

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            self._say()

    def _say(self) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        elapsed = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
        steps = self._steps()
        count = f", {steps} step{'s' if steps > 1 else ''}" if steps else ""
        text = f"{self._label}: {self._doing}, {elapsed}{count}"
        self._publish({"text/plain": text, "text/html": f"<small>{html.escape(text)}</small>"})

    def _publish(self, bundle: dict[str, str]) -> None:
        with self._publishing:
            self._publisher.publish(bundle, {}, transient={"display_id": self._display_id}, update=self._shown)
            self._shown = True
