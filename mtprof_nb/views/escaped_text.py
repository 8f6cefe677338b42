"""Makes names of ops, files and threads, which may be any text, safe to show."""

from __future__ import annotations

import html
import re
from functools import lru_cache

from mtprof_nb.model.trace import ENGINE_PREFIX

#: A longer name is cut in the middle: its beginning and its end say most.
LONGEST = 400
#: Control characters, marks that turn the direction of writing, and halves of surrogate pairs.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

#: Words that names of kernels in C++ have in common, and that tell nothing.
_COMMON_IN_KERNELS = re.compile(r"^void |\(anonymous namespace\)::")


def shown(name: str, longest: int = LONGEST) -> str:
    """`name` with U+FFFD for every unprintable character, cut in the middle if it is very long."""
    if len(name) > longest:
        name = f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"
    return _UNPRINTABLE.sub("\ufffd", name)


def escaped(name: str, longest: int = LONGEST) -> str:
    """`shown` for HTML and SVG, attributes included."""
    return html.escape(shown(name, longest), quote=True)


@lru_cache(maxsize=8192)
def hover(name: str, width: int = 56) -> str:
    """`shown` for a plotly label, which interprets some HTML: escaped, and wrapped at `width`."""
    text = shown(name)
    lines = [text[at : at + width] for at in range(0, len(text), width)]
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def short_name(name: str) -> str:
    """A name without namespaces, parameters and the engine's prefix: `mm` for `aten::mm`."""
    text = shown(_COMMON_IN_KERNELS.sub("", name.removeprefix(ENGINE_PREFIX)), 120)
    bare = re.split(r"<|(?<! )\(", text, maxsplit=1)[0] or text
    return bare.rpartition("::")[2] or bare


def fitted(name: str, characters: int) -> str:
    """`name` cut to so many characters; "" if less than three of its characters would fit."""
    if len(name) <= characters:
        return name
    return f"{name[: characters - 1]}…" if characters >= 4 else ""
