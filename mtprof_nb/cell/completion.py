"""Tab completion of the flags, and of the values that a flag knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mtprof_nb.cell.flags import CONFIG_PARSER, PARSER

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_EVENT = "complete_command"
_PARSERS = {"%%mtprofile": PARSER, "%mtprofile": PARSER, "%mtprofile_config": CONFIG_PARSER}


def complete(_ip: Any, event: SimpleNamespace) -> list[str]:
    """What may stand at the cursor: the values of the flag before it, or the flags themselves."""
    parser = _PARSERS[event.command]
    before = event.text_until_cursor.removesuffix(event.symbol).split()
    values = [option.values for option in parser.options if before and before[-1] in option.spellings]
    if values and values[0]:
        return list(values[0])
    return parser.spellings if event.symbol.startswith("-") else []


def install(ip: InteractiveShell) -> None:
    """Complete in `ip` from now on."""
    for command in _PARSERS:
        ip.set_hook(_EVENT, complete, str_key=command)


def remove(ip: InteractiveShell) -> None:
    """Complete no more."""
    for command in _PARSERS:
        ip.strdispatchers[_EVENT].strs.pop(command, None)
