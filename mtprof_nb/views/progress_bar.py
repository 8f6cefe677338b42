"""A bar that shows how much of a file was read, if that takes longer than a second and somebody watches."""

from __future__ import annotations

import html
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from mtprof_nb.errors import legible
from mtprof_nb.views.frontend import has_user, running_shell

Progress = Callable[[float], None]
#: Writes the title and a share of 1; None removes the bar.
Surface = Callable[[str, float | None], None]

DELAY_S = 1.0
INTERVAL_S = 0.2


@contextmanager
def progress_bar(title: str) -> Iterator[Progress | None]:
    """A function to call with the share that is done, from 0 to 1. None where nobody would see the bar."""
    surface = _surface()
    if surface is None:
        yield None
        return
    bar = _Bar(title, surface)
    try:
        yield bar.update
    finally:
        bar.remove()


class _Bar:
    def __init__(self, title: str, surface: Surface) -> None:
        self._title = legible(title)
        self._surface = surface
        self._next = time.monotonic() + DELAY_S
        self._is_shown = False

    def update(self, share: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + INTERVAL_S
            self._is_shown = True
            self._surface(self._title, min(max(share, 0.0), 1.0))

    def remove(self) -> None:
        if self._is_shown:
            self._surface(self._title, None)


def _surface() -> Surface | None:
    shell = running_shell()
    if shell is not None and has_user(shell) is not None:
        return _Notebook(shell.display_pub) if has_user(shell) else None
    # A program without a terminal, as one under pythonw, has no such stream.
    stream: TextIO | None = sys.stderr
    return _Terminal(stream) if stream is not None and stream.isatty() else None


class _Notebook:
    """An element below the cell."""

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._display_id = uuid.uuid4().hex
        self._is_shown = False

    def __call__(self, title: str, share: float | None) -> None:
        bundle = {}
        if share is not None:
            bar = f"<progress value='{share:.3f}' max='1'></progress>"
            markup = f"<small>{html.escape(title)} {bar} {share:.0%}</small>"
            bundle = {"text/plain": f"{title}: {share:.0%}", "text/html": markup}
        self._publisher.publish(bundle, {}, transient={"display_id": self._display_id}, update=self._is_shown)
        self._is_shown = True


class _Terminal:
    """One line, which is written again."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, title: str, share: float | None) -> None:
        line = "" if share is None else f"{title}: {share:.0%}"
        # The code erases what the line before has left.
        self._stream.write(f"\r{line}\x1b[K")
        self._stream.flush()
