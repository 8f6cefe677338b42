"""The end of a cell's own code: before IPython shows its last value, draws its traceback or flushes its figures.

All of these run code that must not be recorded: a tensor's repr computes, a traceback reads and colours source files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mtprof_nb.cell.traceback import hide_hooks

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

_TRACEBACK = "showtraceback"


class Boundary:
    """Calls `end` when the code of `cell` has ended, normally or not; cells that it runs itself do not count."""

    def __init__(self, ip: InteractiveShell, cell: ExecutionResult | None, end: Callable[[], Any]) -> None:
        self._ip = ip
        self._cell = cell
        self._end = end
        self._display: Callable[[Any], None] = sys.displayhook
        self._show_traceback: Callable[..., None] = ip.showtraceback
        #: Another package's replacement of the shell's method, None without one.
        self._replaced = vars(ip).get(_TRACEBACK)

    def install(self) -> None:
        if self._ip.ast_node_interactivity != "all":
            sys.displayhook = self._before_display
        self._ip.showtraceback = self._before_traceback
        # First in the list, because another callback of the event draws the figures.
        self._ip.events.callbacks["post_execute"].insert(0, self._after_execution)

    def remove(self) -> None:
        """Restore the shell; a second call does nothing."""
        if sys.displayhook == self._before_display:
            sys.displayhook = self._display
        if vars(self._ip).get(_TRACEBACK) == self._before_traceback:
            del self._ip.showtraceback
            if self._replaced is not None:
                self._ip.showtraceback = self._replaced
        if self._after_execution in self._ip.events.callbacks["post_execute"]:
            self._ip.events.unregister("post_execute", self._after_execution)

    @property
    def _is_own(self) -> bool:
        """Whether it is the cell itself that ends: while a nested cell runs, the shell has that cell's result."""
        return self._ip.displayhook.exec_result in (None, self._cell)

    def _before_display(self, value: Any = None) -> None:
        if value is not None and self._is_own:
            self._end()
        self._display(value)

    def _before_traceback(self, *args: Any, **options: Any) -> None:
        if self._is_own:
            self._end()
        hide_hooks(sys.exc_info()[1])
        self._show_traceback(*args, **options)

    def _after_execution(self) -> None:
        if self._ip.last_execution_result is self._cell:
            self._end()
