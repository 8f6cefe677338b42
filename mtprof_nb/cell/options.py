"""Every flag of `%%mtprofile`: its spelling, its meaning, and the parser of its value."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtprof_nb.analysis.sort_keys import SORT_KEYS, sort_attribute
from mtprof_nb.capture.activities import ProfilerActivity, as_activity
from mtprof_nb.capture.registry import HOOK_KINDS
from mtprof_nb.capture.schedule import schedule
from mtprof_nb.export.by_suffix import SUFFIXES

RECORD_FLAGS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
SCHEDULE_KEYS = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
ACTIVITIES = tuple(activity.value.lower() for activity in ProfilerActivity)


def _require(is_valid: bool, problem: str) -> None:
    if not is_valid:
        raise argparse.ArgumentTypeError(problem)


def positive(text: str) -> int:
    """A whole number from 1 up."""
    _require(text.isdecimal() and int(text) > 0, f"{text!r} is not a count: give a whole number from 1 up")
    return int(text)


def _activities(text: str) -> tuple[str, ...]:
    try:
        return tuple(as_activity(name.strip()).value for name in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _schedule(text: str) -> dict[str, int]:
    """`wait=1,active=3` as the keywords of `schedule`."""
    parts = [part.partition("=") for part in text.replace(" ", "").split(",")]
    _require(
        all(key in SCHEDULE_KEYS and value.isdecimal() for key, _, value in parts),
        f"{text!r} is not a schedule: write wait=1,warmup=1,active=3 with any of {', '.join(SCHEDULE_KEYS)}",
    )
    steps = {key: int(value) for key, _, value in parts}
    try:
        schedule(**steps)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return steps


def _variable(text: str) -> str:
    _require(text.isidentifier(), f"{text!r} cannot name a variable: give a plain Python name")
    return text


def _hook(text: str) -> str:
    is_known = text == "auto" or text in HOOK_KINDS
    _require(is_known, f"unknown hook {text!r}: use auto or one of {', '.join(HOOK_KINDS)}")
    return text


def _sort_key(text: str) -> str:
    try:
        sort_attribute(text, SORT_KEYS)
    except AttributeError:
        msg = f"no column {text!r}: sort by one of {', '.join(SORT_KEYS)}"
        raise argparse.ArgumentTypeError(msg) from None
    return text


def _new_file(text: str) -> Path:
    path = Path(text).expanduser()
    _require(path.parent.is_dir(), f"{str(path.parent)!r} is not a directory: create it first")
    _require(not path.is_dir(), f"{text!r} is a directory: name a file in it")
    return path.absolute()  # the program may change the current folder


def _page_file(text: str) -> Path:
    _require(text.endswith((".html", ".htm")), f"{text!r} is no page: end it in .html")
    return _new_file(text)


def trace_file(text: str) -> Path:
    """The path of a file that a recording can be written to, by its suffix."""
    page = "; -H writes a page, and mtprof report that of a recording" if text.endswith((".html", ".htm")) else ""
    _require(text.endswith(SUFFIXES), f"{text!r} has no known suffix: end it in {', '.join(SUFFIXES)}{page}")
    return _new_file(text)


@dataclass(frozen=True)
class Option:
    """One flag: its spellings, its field of `Flags`, and the parser of its value (None for a switch)."""

    spellings: tuple[str, ...]
    dest: str
    help: str
    read: Callable[[str], Any] | None = None
    metavar: str | None = None
    #: Whether `%mtprofile_config` may set it for every cell.
    can_default: bool = True
    negatable: bool = False
    #: Values that tab completion offers.
    values: tuple[str, ...] = ()

    @property
    def negation(self) -> str:
        """The flag that switches it off."""
        return f"--no-{self.spellings[-1].removeprefix('--')}"

    def add_to(self, group: argparse._ArgumentGroup) -> None:
        """Add the flag, and its negation if it has one, to a parser."""
        if self.read is not None:
            group.add_argument(*self.spellings, dest=self.dest, type=self.read, metavar=self.metavar, help=self.help)
            return
        group.add_argument(*self.spellings, dest=self.dest, action="store_true", help=self.help)
        if self.negatable:
            group.add_argument(self.negation, dest=self.dest, action="store_false", help=argparse.SUPPRESS)


def _switch(flag: str, text: str) -> Option:
    return Option((f"--{flag.replace('_', '-')}",), flag, text, negatable=True)


OPTIONS = (
    _switch("with_stack", "record the source lines of each op"),
    _switch("record_shapes", "record the shapes of each op's inputs"),
    _switch("profile_memory", "record allocations and releases"),
    _switch("with_flops", "count floating point operations where a formula is known"),
    _switch("with_modules", "record the nn.Module path of each op"),
    Option(("--all",), "all", "all five flags above"),
    Option(
        ("--activities",), "activities", "devices to record, such as cpu,cuda", _activities, "LIST", values=ACTIVITIES
    ),
    Option(
        ("--hook",),
        "hook",
        f"how to record: auto, {', '.join(HOOK_KINDS)}",
        _hook,
        "NAME",
        values=("auto", *HOOK_KINDS),
    ),
    Option(
        ("--schedule",), "schedule", "steps to record, such as wait=1,warmup=1,active=3,repeat=1", _schedule, "STEPS"
    ),
    Option(
        ("--max-events",),
        "max_events",
        "stop recording after N events: all figures are of the time until then, and say so",
        positive,
        "N",
    ),
    Option(("--name",), "name", "title of the profile; default: Cell [n]", str, "LABEL", can_default=False),
    Option(("-o", "--out"), "out", "store the profile in this variable", _variable, "NAME", can_default=False),
    Option(("-r", "--return"), "returns", "make the profile the value of the cell", can_default=False),
    Option(("-q", "--quiet"), "quiet", "show nothing", negatable=True),
    Option(("-s", "--sort"), "sort", "sort the table by this column", _sort_key, "KEY", values=SORT_KEYS),
    Option(("-l", "--limit"), "limit", "show at most N rows", positive, "N"),
    Option(
        ("-D", "--dump"),
        "dump",
        "save the recording, .mtp, or a Chrome trace of it, .json or .json.gz",
        trace_file,
        "FILE",
        can_default=False,
    ),
    Option(("-T", "--text"), "text", "write the table as text", _new_file, "FILE", can_default=False),
    Option(
        ("--show-all",),
        "show_all",
        "show Python frames, including IPython's; PyTorch is then recorded by hook kineto",
        negatable=True,
    ),
    Option(("-H", "--html"), "html", "write the panel as a page, .html", _page_file, "FILE", can_default=False),
    Option(
        ("--against",),
        "against",
        "compare with this profile: a variable, last, or a file",
        str,
        "NAME",
        can_default=False,
    ),
    Option(
        ("--python",),
        "with_python",
        "sample where Python's own time goes: for lines, stacks and functions()",
        negatable=True,
    ),
    Option(
        ("--ranks",), "ranks", "run the cell on all engines of the connected ipyparallel cluster", can_default=False
    ),
    Option(
        ("--targets",), "targets", "with --ranks: engines to use, such as 0:2 or [0,1]", str, "LIST", can_default=False
    ),
)
HELP = Option(("-h", "--help"), "help", "show this help and run nothing")


def spellings(options: Iterable[Option]) -> list[str]:
    """Everything that a user may type for one of `options`, negations included."""
    negations = [option.negation for option in options if option.negatable]
    return [spelling for option in options for spelling in option.spellings] + negations


def nearest(message: str, known: Sequence[str]) -> str:
    """`did you mean --all? ` for a message about a flag that resembles a `known` one, else ""."""
    typed = re.findall(r"--[\w-]+", message) if message.startswith("unrecognized") else []
    near = difflib.get_close_matches(typed[0], known, 1, 0.7) if typed else []
    return f"did you mean {near[0]}? " if near else ""


def without_all(given: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given, with `--all` replaced by those it stands for. A flag given with it overrides it."""
    wants_all = given.pop("all", False)
    return (dict.fromkeys(RECORD_FLAGS, True) if wants_all else {}) | given
