"""Installs the magics and the completion of their flags in a shell, and removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from mtprof_nb.capture.marks.marked_cell import CellMarker, marker_of
from mtprof_nb.capture.native.recorder_build import start_build
from mtprof_nb.capture.native.recorder_cache import SWITCH, SharedFolderError
from mtprof_nb.cell.cell_recording import print_note
from mtprof_nb.cell.flags import CONFIG_PARSER, PARSER
from mtprof_nb.cell.source import OneLiner, flags_of, is_profiled, profiled
from mtprof_nb.views.frontend import is_attended

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.magic import Magics

_PARSERS = {"%%mtprofile": PARSER, "%mtprofile": PARSER, "%mtprofile_config": CONFIG_PARSER}


def install(ip: InteractiveShell, magics: type[Magics]) -> None:
    """Register the magics, and the rewriting of cells that begin with one; a second call does nothing."""
    if profiled in ip.input_transformers_cleanup:
        return
    ip.register_magics(magics)
    ip.input_transformers_cleanup.append(profiled)
    ip.input_transformers_post.append(OneLiner(ip))
    registered = ip.magics_manager.registry[magics.__name__]
    CellMarker(ip, is_profiled, lambda tree: registered.defaults.marks_functions(flags_of(tree) or "")).install()
    ip.Completer.custom_matchers.append(match_flags)
    if is_attended(ip):
        _start_build()


def _start_build() -> None:
    """Start to build the native recorder where it is missing. A program that executes notebooks never comes here."""
    try:
        version = start_build()
    except SharedFolderError as error:
        print_note(f"cells are recorded without the faster recorder: {error}")
        return
    if version is not None:
        print_note(
            f"compiling a faster recorder for torch {version} in the background, once; cells are recorded without it "
            f"until it is ready (the environment variable {SWITCH}=off prevents this)"
        )


def remove(ip: InteractiveShell, magics: type[Magics]) -> None:
    """Undo `install`; does nothing where nothing is installed."""
    if profiled not in ip.input_transformers_cleanup:
        return
    ip.Completer.custom_matchers.remove(match_flags)
    if (marker := marker_of(ip)) is not None:
        marker.remove()
    ip.input_transformers_cleanup.remove(profiled)
    ip.input_transformers_post[:] = [step for step in ip.input_transformers_post if not isinstance(step, OneLiner)]
    ip.magics_manager.registry.pop(magics.__name__)
    for kind, names in magics.magics.items():
        for name in names:
            ip.magics_manager.magics[kind].pop(name, None)


def offered(line: str, token: str) -> list[str]:
    """Completions of `token`, which ends `line`: values of the flag before it, or flags."""
    before = line.removesuffix(token).split()
    parser = _PARSERS.get(before[0]) if before else None
    if parser is None:
        return []
    values = next((option.values for option in parser.options if before[-1] in option.spellings), ())
    choices = values or (parser.spellings if token.startswith("-") else ())
    return [choice for choice in choices if choice.startswith(token)]


# A matcher, and not a `complete_command` hook, because Jedi takes `--with-` for an expression and completes it too.
@context_matcher(identifier="mtprof_nb.flags")  # type: ignore[untyped-decorator]
def match_flags(context: CompletionContext) -> SimpleMatcherResult:
    """Complete flags and their values, and suppress all other completions there."""
    texts = offered(context.text_until_cursor, context.token)
    return {"completions": [SimpleCompletion(text) for text in texts], "suppress": bool(texts), "ordered": True}
