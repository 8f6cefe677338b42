"""Who sent the running cell: a frontend with a person before it, or a program that executes notebooks."""

from __future__ import annotations

import os
import sys
from typing import Any


def running_shell() -> Any:
    """The running IPython shell, None where there is none; IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def has_user(shell: Any) -> bool | None:
    """Whether a person sits at the frontend that sent the running cell; None where this is not known, as in a terminal.

    nbconvert, `jupyter execute`, nbval and papermill state in their request that nobody can answer a question.
    """
    request = shell.get_parent() if hasattr(shell, "get_parent") else {}
    answer: bool | None = request.get("content", {}).get("allow_stdin")
    return answer


def is_attended(shell: Any) -> bool:
    """Whether a person uses this shell: at a frontend, or at a terminal."""
    answer = has_user(shell)
    return sys.stdin is not None and sys.stdin.isatty() if answer is None else answer


def is_unattended(shell: Any) -> bool:
    """Whether a program executes the notebook: its output is read without a kernel, where a widget does not work.

    Voila executes it as such a program, and then lets people use the widgets.
    """
    return has_user(shell) is False and not os.environ.get("SERVER_SOFTWARE", "").startswith("voila/")


def is_marimo() -> bool:
    """Whether a marimo notebook runs the program: it shows values of cells, and nothing that is displayed."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def run_of(shell: Any) -> tuple[str, str]:
    """The cell that runs and this run of it, as the frontend numbers them; "" where it does not."""
    kernel = getattr(shell, "kernel", None)
    parent = kernel.get_parent() if kernel is not None and hasattr(kernel, "get_parent") else {}
    return parent.get("metadata", {}).get("cellId") or "", parent.get("header", {}).get("msg_id", "")
