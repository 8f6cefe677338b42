"""Who asked for what is shown: a page with a person before it, or a program that executes notebooks."""

from __future__ import annotations

import sys
from typing import Any


def running_shell() -> Any:
    """The running IPython shell, None where there is none; IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def is_unattended(shell: Any) -> bool:
    """Whether nbconvert, `jupyter execute`, nbval or papermill runs the cell: they say that nobody can be asked.

    What they leave is read without a kernel, and of a widget and a page a converter takes the widget.
    """
    request = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return request.get("content", {}).get("allow_stdin") is False
