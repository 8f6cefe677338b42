"""Delivery of a finished profile: a variable, files and the panel. If one fails, the others are still made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtprof_nb.cell.cell_recording import CellEnding, print_note
from mtprof_nb.cell.flags import Flags
from mtprof_nb.cell.table_file import write_table
from mtprof_nb.comparing import compare
from mtprof_nb.export import by_suffix
from mtprof_nb.views.page import html_page
from mtprof_nb.views.panel import show_panel

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from mtprof_nb.comparison.compared import Compared
    from mtprof_nb.profiler import profile
    from mtprof_nb.recording import Recording


def deliver(ip: InteractiveShell, flags: Flags, against: Any, prof: profile | Recording, ending: CellEnding) -> None:
    """Store, write and show `prof` as `flags` ask, and its difference from the recording `against`, if there is one.

    A step that fails prints a line; an interrupt ends all.
    """
    if flags.out is not None:
        ip.user_ns[flags.out] = prof
    if flags.dump is not None:
        _attempt("written", partial(by_suffix.write, prof.trace, flags.dump))
    if flags.text is not None:
        _attempt("written", partial(write_table, prof, flags, flags.text))
    if flags.html is not None:
        _attempt("written", partial(_write_page, flags.html, prof, flags, ending, against))
    if ending.is_silent:
        return
    if not flags.quiet:
        _attempt("shown", partial(_show, prof, flags, ending, against))
        return
    for note in ending.notes:
        print_note(note)


def _attempt(what: str, act: Callable[[], object]) -> None:
    try:
        act()
    except Exception as error:
        print_note(f"the profile could not be {what} ({type(error).__name__}: {error}); mtprof_nb.last() has it")


def _show(prof: profile | Recording, flags: Flags, ending: CellEnding, against: Any) -> None:
    options = flags.show_options(prof.name, (ending.outcome, *ending.notes))
    show_panel.show(prof.trace, against=_difference(prof, flags, against), **options)


def _write_page(path: Path, prof: profile | Recording, flags: Flags, ending: CellEnding, against: Any) -> None:
    options = flags.show_options(prof.name, (ending.outcome, *ending.notes))
    scene = show_panel.scene_of(prof.trace, against=_difference(prof, flags, against), **options)
    html_page.write(html_page.page(scene), path)


def _difference(prof: profile | Recording, flags: Flags, against: Any) -> Compared | None:
    """The comparison with the recording `against`, None without one."""
    if against is None:
        return None
    before = str(flags.against) if flags.against != prof.name else "before"
    return compare(against, prof, names=(before, prof.name)).compared
