"""Makes names of ops, files and threads, which may be any text, safe to show."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any

from mtprof_nb.errors import shown as shown
from mtprof_nb.model.trace import ENGINE_PREFIX

#: Kernels of templates in C++ have names of thousands of characters.
_LONGEST_KERNEL = 20_000
#: Words that names of kernels in C++ have in common, and that distinguish none.
_COMMON_IN_KERNELS = re.compile(r"^void |\(anonymous namespace\)::")


def encodable(text: str, stream: Any) -> str:
    """`text` with those characters escaped that the encoding of `stream` lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@lru_cache(maxsize=8192)
def hover(name: str, width: int = 56) -> str:
    """`shown` for a plotly label, which interprets some HTML: escaped, and wrapped at `width`."""
    text = shown(name)
    lines = [text[at : at + width] for at in range(0, len(text), width)]
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def short_name(name: str) -> str:
    """A name without namespaces, parameters and the engine's prefix: `mm` for `aten::mm`."""
    text = shown(_COMMON_IN_KERNELS.sub("", shown(name.removeprefix(ENGINE_PREFIX), _LONGEST_KERNEL)), 120)
    bare = re.split(r"<|(?<! )\(", text, maxsplit=1)[0] or text
    return bare.rpartition("::")[2] or bare


def fitted(name: str, characters: int) -> str:
    """`name` cut to so many characters; "" if less than three of its characters would fit."""
    if len(name) <= characters:
        return name
    return f"{name[: characters - 1]}…" if characters >= 4 else ""
