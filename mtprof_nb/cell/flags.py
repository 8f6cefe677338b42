"""Parses a line of flags, on top of the defaults that the notebook has set for all its cells."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.registry import default_hooks
from mtprof_nb.capture.schedule import schedule
from mtprof_nb.cell.default_flags import marks_functions, records_everything, samples_python
from mtprof_nb.cell.options import HELP, OPTIONS, RECORD_FLAGS, Option, nearest, spellings, without_all
from mtprof_nb.model.trace import Recorded


@dataclass(frozen=True)
class Flags:
    """Flags of one `%%mtprofile` line, on top of the notebook's defaults."""

    #: None stands for the default: on with a hook that records everything at little cost.
    with_stack: bool | None = None
    record_shapes: bool | None = None
    profile_memory: bool | None = None
    with_flops: bool | None = None
    with_modules: bool | None = None
    activities: tuple[str, ...] | None = None
    hook: str = "auto"
    schedule: Mapping[str, int] | None = None
    max_events: int = Request.max_events
    name: str | None = None
    out: str | None = None
    returns: bool = False
    quiet: bool = False
    sort: str | None = None
    limit: int | None = None
    dump: Path | None = None
    text: Path | None = None
    html: Path | None = None
    against: str | None = None
    show_all: bool = False
    #: None stands for the default: on if the native recorder takes the samples.
    with_python: bool | None = None
    ranks: bool = False
    targets: str | None = None
    help: bool = False

    @property
    def profile_options(self) -> dict[str, Any]:
        """The keywords for `profile`. All windows of a schedule are kept."""
        given = {flag: getattr(self, flag) for flag in RECORD_FLAGS}
        records_all = records_everything(self.hook, self.activities)
        # Of the hooks for PyTorch, only Kineto records calls of Python functions.
        hook = "kineto" if self.show_all and records_all and self.hook == "auto" else self.hook
        by_default = records_all and hook == self.hook
        chosen = {flag: by_default if value is None else value for flag, value in given.items()}
        others = {name: getattr(self, name) for name in ("activities", "max_events", "name")}
        return {**chosen, **others} | {
            "with_python": samples_python() if self.with_python is None else self.with_python,
            "hook": hook,
            "schedule": schedule(**self.schedule) if self.schedule else None,
            "acc_events": self.schedule is not None,
        }

    def show_options(self, name: str, notes: Iterable[str | None]) -> dict[str, Any]:
        """The keywords for `show` of a profile with this name, and with notes about how it ended."""
        shown = {option: getattr(self, option) for option in ("sort", "limit", "show_all")}
        return {**shown, "name": name, "status": "; ".join(filter(None, notes)) or None}

    @property
    def recorded_if_cheap(self) -> Recorded | None:
        """Facts to record if the program itself imports a runtime whose hook records everything; None for no others."""
        if self.hook != "auto" or self.show_all or any(kind.runtime_is_imported for kind in default_hooks()):
            return None
        return Recorded(**{flag: getattr(self, flag) is not False for flag in (*RECORD_FLAGS, "with_python")})


class FlagParser(argparse.ArgumentParser):
    """Parses `options` and `--help`. A mistake is a `UsageError`, which a notebook shows without a traceback."""

    def __init__(self, magic: str, usage: str, description: str, options: tuple[Option, ...]) -> None:
        super().__init__(
            magic,
            usage.replace("%", "%%"),
            description,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=32, width=100),
            argument_default=argparse.SUPPRESS,
            add_help=False,
            allow_abbrev=False,
        )
        self.options = (*options, HELP)
        group = self.add_argument_group("flags")
        for option in self.options:
            option.add_to(group)

    @property
    def spellings(self) -> list[str]:
        return spellings(self.options)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with the remedy."""
        from IPython.core.error import UsageError

        msg = f"{message} ({nearest(message, self.spellings)}{self.prog} -h lists every flag)"
        raise UsageError(msg)

    def read(self, line: str) -> tuple[dict[str, Any], str]:
        """The flags at the beginning of `line`, and the unchanged text after them."""
        argv, rest = self._split(line)
        return without_all(vars(self.parse_args(argv))), rest

    def _split(self, line: str) -> tuple[list[str], str]:
        argv: list[str] = []
        is_value = False
        for token in _TOKEN.finditer(line):
            text = token.group()
            if not is_value and text == "--":
                return argv, line[token.end() :].strip()
            if not is_value and not text.startswith("-"):
                return argv, line[token.start() :].strip()
            if token["open"]:
                self.error(f"no closing quotation in {text!r}")
            argv.append(_QUOTED.sub(lambda quoted: quoted.group()[1:-1], text))
            is_value = not is_value and self._wants_value(text)
        return argv, ""

    def _wants_value(self, text: str) -> bool:
        with_value = {spelling for option in self.options if option.read for spelling in option.spellings}
        if text.startswith("--"):
            return text in with_value
        taking = [index for index, letter in enumerate(text[1:], 1) if f"-{letter}" in with_value]
        return bool(taking) and taking[0] == len(text) - 1


_TOKEN = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*'|(?P<open>["']))+""")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")

PARSER = FlagParser(
    "%%mtprofile",
    "%%mtprofile [flags] on the first line of a cell, or %mtprofile [flags] statement",
    "Record the tensor operations of the cell, or of the statement, and show them below its own output.\n"
    "The cell runs as it would without this line. mtprof_nb.last() returns the profile afterwards.\n"
    "With hook native, the first five flags are on, and so is --python if the native recorder is built.\n"
    "--no-... switches one off, as --no-with-stack.",
    OPTIONS,
)
CONFIG_PARSER = FlagParser(
    "%mtprofile_config",
    "%mtprofile_config [flags]",
    "Set default flags for every later %%mtprofile of this kernel; without flags, show them.",
    (
        *(option for option in OPTIONS if option.can_default),
        Option(("--reset",), "reset", "clear the defaults that were set before"),
    ),
)


class Defaults:
    """The flags that `%mtprofile_config` has set, which those of a cell override."""

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def read(self, line: str) -> tuple[Flags, str]:
        """The flags of a magic's line, and the statement after them."""
        given, statement = PARSER.read(line)
        flags = Flags(**{**self._given, **given})
        if flags.targets is not None and not flags.ranks:
            PARSER.error("--targets names engines for --ranks: add --ranks, or leave --targets out")
        return flags, statement

    def marks_functions(self, line: str) -> bool:
        """Whether a cell with these flags needs marks inside functions. Flags that are wrong are reported later."""
        from IPython.core.error import UsageError

        with suppress(UsageError, ValueError):
            return marks_functions(self.read(line)[0].profile_options)
        return True

    def configure(self, line: str) -> str:
        """Set the flags of `line` as defaults, and return the text to show, "" for none."""
        given, rest = CONFIG_PARSER.read(line)
        if rest:
            CONFIG_PARSER.error(f"{rest!r} is not a flag")
        if given.pop("help", False):
            return CONFIG_PARSER.format_help()
        self._given = ({} if given.pop("reset", False) else self._given) | given
        spelled = [spell(option, self._given[option.dest]) for option in OPTIONS if option.dest in self._given]
        return "" if line.strip() else " ".join(spelled) or "no flags are set"


def spell(option: Option, value: Any) -> str:
    """A flag and its value as a user would type them."""
    if option.read is None:
        return option.spellings[-1] if value else option.negation
    if isinstance(value, Mapping):
        value = [f"{key}={number}" for key, number in value.items()]
    return f"{option.spellings[-1]} {','.join(value) if isinstance(value, list | tuple) else value}"
