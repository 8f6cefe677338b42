"""Code that torch's compiler wrote, as it keeps it: modules, tables of lines, graphs as text.

Seen in torch 2.9.1, 2.13.0 and 2.15.0. Each function returns nothing where a name is missing, so
that a region stays closed; nothing is imported, and nothing is set that the compiler reads.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

from mtprof_nb.capture.patches import Patches

#: A frame in the text of a stack, and the line of source below it.
_FRAME = re.compile(r'File "(.+)", line (\d+), in (.+)\n(?: {4}(.*)\n)?')


class SourceFrame(NamedTuple):
    """A frame of the user's when the code was compiled, and the text of its line then."""

    file: str
    line: int
    function: str
    code: str


def _code_cache() -> Any:
    return getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)


def wrapper_files() -> Iterable[str]:
    """The files with a table of lines."""
    return getattr(_code_cache(), "linemaps", {}).keys()


def lines_of_wrapper(file: str) -> list[tuple[int, tuple[SourceFrame, ...]]]:
    """First lines of parts of a wrapper, in order, and the user's frames of each."""
    table = getattr(_code_cache(), "linemaps", {}).get(file) or ((), ())
    return [(int(line), frames_of_text(text)) for line, text in zip(*table, strict=True)]


def frames_of_text(text: str | None) -> tuple[SourceFrame, ...]:
    """The frames in the text of a stack, outermost first."""
    found = _FRAME.findall(text or "")
    return tuple(SourceFrame(one[0], int(one[1]), one[2], one[3].strip()) for one in found)


def graphs(living: Callable[..., list[list[Any]]]) -> dict[str, str]:
    """Texts of the graphs that are still there, by the name of their wrapper's file without suffix.

    `living` returns a list of the living instances of each class that it is given.
    """
    kind = getattr(sys.modules.get("torch._inductor.output_code"), "CompiledFxGraph", None)
    if kind is None:
        return {}
    return {
        str(graph.cache_key): str(graph.inductor_post_grad_graph_str or "")
        for graph in living(kind)[0]
        if getattr(graph, "cache_key", None) and hasattr(graph, "inductor_post_grad_graph_str")
    }


def loaded_wrappers() -> list[ModuleType]:
    """The modules that were written and loaded so far."""
    return list(getattr(_code_cache(), "modules", ()))


def replace_loader(patches: Patches, then: Callable[[ModuleType], None]) -> None:
    """Call `then` with each module that is loaded from now on, until `patches` are undone."""
    cache = _code_cache()
    if not hasattr(cache, "load_by_key_path"):
        return

    def maker(original: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
        def load_by_key_path(*args: Any, **kwargs: Any) -> ModuleType:
            module = original(*args, **kwargs)
            then(module)
            return module

        return load_by_key_path

    patches.replace(cache, "load_by_key_path", maker)
