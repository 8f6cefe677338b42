"""`mtprof run`: run a script or a module, show where its time went, and save the recording."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TextIO

from mtprof_nb.cell.flags import Flags
from mtprof_nb.cell.options import OPTIONS, Option, without_all
from mtprof_nb.cli.arguments import UsageError
from mtprof_nb.cli.printing import print_to
from mtprof_nb.cli.script import Script
from mtprof_nb.cli.script_ending import INTERRUPTED, ExitBySignal, ScriptEnding, failed, run_to_end
from mtprof_nb.cli.script_recording import ScriptRecording

#: Flags of the magic that are about variables and values of a notebook, and about its cluster.
_OF_NOTEBOOKS = ("out", "returns", "against", "ranks", "targets")
#: Flags that differ from the magic's.
_CHANGED: dict[str, dict[str, Any]] = {
    "name": {"help": "title of the profile; default: the script's name"},
    "dump": {"spellings": ("-o", "-D", "--dump")},
    "show_all": {"help": "show Python frames"},
}
RUN_OPTIONS: tuple[Option, ...] = tuple(
    dataclasses.replace(option, **_CHANGED.get(option.dest, {}))
    for option in OPTIONS
    if option.dest not in _OF_NOTEBOOKS
)


def add(subparsers: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subparsers.add_parser(
        "run",
        help="run a script or a module and show where its time went",
        usage="%(prog)s [flags] script.py [arguments], or %(prog)s [flags] -m module [arguments]",
        description="Run a program as Python would, with its exit status, and print its profile to stderr.",
        argument_default=argparse.SUPPRESS,
    )
    flags = parser.add_argument_group("flags")
    for option in RUN_OPTIONS:
        option.add_to(flags)
    flags.add_argument("-m", dest="is_module", action="store_true", default=False, help="run a module, not a file")
    parser.add_argument("script", help="the Python file, or the name of the module after -m")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    rest.required = False
    parser.set_defaults(command=_run, parser=parser)


def _run(given: argparse.Namespace) -> int:
    known = {option.dest for option in RUN_OPTIONS}
    flags = Flags(**without_all({name: value for name, value in vars(given).items() if name in known}))
    script = Script(given.script, given.arguments, given.is_module)
    exit_by_signal = ExitBySignal()
    try:
        ending = _run_script(script, flags)
    except KeyboardInterrupt:
        # Before the script began, or while its profile was made.
        ending = INTERRUPTED
    exit_by_signal.is_due = ending == INTERRUPTED
    return ending.status


def _run_script(script: Script, flags: Flags) -> ScriptEnding:
    # The script may replace it.
    screen, process = sys.stderr, os.getpid()
    script.become_main()
    try:
        tree = script.tree()
    except UsageError:
        raise
    except BaseException as error:
        return failed(error)
    recording = _recording(flags, script)
    marked = recording.marked(tree)
    recording.begin()
    ending = run_to_end(partial(script.execute, marked), recording.end)
    # A forked child that runs to the end must not write over the recording of its parent.
    return _deliver(recording, flags, ending, screen) if os.getpid() == process else ending


def _recording(flags: Flags, script: Script) -> ScriptRecording:
    try:
        options = {**flags.profile_options, "name": flags.name or script.name}
        return ScriptRecording(options, vars(script.main), flags.recorded_if_cheap)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _deliver(recording: ScriptRecording, flags: Flags, ending: ScriptEnding, screen: TextIO) -> ScriptEnding:
    """Write and print the profile. If this fails, the exit status of a script that succeeded is 1."""
    from mtprof_nb.cell.table_file import write_table
    from mtprof_nb.export import by_suffix
    from mtprof_nb.views.panel.show_panel import scene_of
    from mtprof_nb.views.static.static_page import text

    prof = recording.prof
    options = flags.show_options(prof.name, (ending.outcome, *recording.notes))
    steps: list[Callable[[], object]] = []
    if flags.dump is not None:
        steps.append(partial(by_suffix.write, prof.trace, flags.dump))
    if flags.text is not None:
        steps.append(partial(write_table, prof, flags, flags.text))
    if flags.html is not None:
        steps.append(partial(prof.export_html, flags.html, **options))
    if not flags.quiet:
        steps.append(lambda: print_to(screen, text(scene_of(prof.trace, **options))))
    is_delivered = recording.is_complete
    for step in steps:
        try:
            step()
        except Exception as error:
            print_to(screen, f"mtprof_nb: {error}")
            is_delivered = False
    return ending if is_delivered or ending.status else ScriptEnding(1)
