"""The two that run marked code: an IPython shell, and a script of the terminal.

Notes call the code by the host's `noun`. It is compiled with the host's `flags`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class ScriptHost:
    """A script, whose global names are those of its `__main__`."""

    noun = "script"
    flags = 0

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace

    def shown(self, lines: list[str]) -> list[str]:
        """The lines to show for code that was compiled from `lines`: the same."""
        return lines


class ShellHost:
    """An IPython shell, which changes a cell before it compiles it."""

    noun = "cell"

    def __init__(self, ip: InteractiveShell) -> None:
        self._ip = ip

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The user's variables."""
        names: Mapping[str, Any] = self._ip.user_ns
        return names

    @property
    def flags(self) -> int:
        """The flags of the shell's compiler, which remembers the futures of earlier cells."""
        flags: int = self._ip.compile.flags
        return flags

    def shown(self, lines: list[str]) -> list[str]:
        """The cell as it was typed, or as it was compiled where the lines of the two differ."""
        running = self._ip.displayhook.exec_result
        compiled = (getattr(running.info, "transformed_cell", None) or "") if running is not None else ""
        if compiled.splitlines() != lines:
            return lines
        typed: list[str] = running.info.raw_cell.splitlines()
        if lines[-1].startswith("get_ipython().run_cell_magic("):
            # An inner cell magic took the rest of the cell into its call.
            typed = typed[: len(lines)]
        # A line may have been added at the end.
        return typed if len(typed) <= len(lines) <= len(typed) + 1 else lines


Host = ScriptHost | ShellHost
