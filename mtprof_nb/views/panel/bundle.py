"""Bundles the panel's ES modules into the one script that a notebook frontend takes."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from mtprof_nb.views.panel import wire

_FOLDER = Path(__file__).parents[1] / "web"
_IMPORT = re.compile(r'^(?:import|export) .*? from "\.[\w./-]*/([\w-]+\.js)";$', re.MULTILINE | re.DOTALL)

# Each module becomes a blob of its own, the imported ones first, so that an import can name the blob of its target.
# A module is known by its file name, whichever folder it is in.
# One set of modules serves all panels of a page. Compressed, because a notebook saves it with every panel.
_LINKER = """\
const packed = "%(packed)s";
const tabs = %(tabs)s;

async function link() {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const sources = await new Response(plain).json();
  const urls = {};
  for (const [name, source] of Object.entries(sources)) {
    const linked = source.replace(/from "\\.[\\w./-]*\\/([\\w-]+\\.js)"/g, (_, target) => `from "${urls[target]}"`);
    urls[name] = URL.createObjectURL(new Blob([linked], { type: "text/javascript" }));
  }
  const kinds = await Promise.all(tabs.map(async (name) => [name, await import(urls[`${name}.js`])]));
  const { render } = await import(urls["panel.js"]);
  return (context) => render(context, Object.fromEntries(kinds));
}

const linked = (globalThis[Symbol.for("mtprof_nb %(digest)s")] ??= link());
export default { render: async (context) => (await linked)(context) };
"""


def imports(source: str) -> list[str]:
    """The modules that an ES module imports."""
    return _IMPORT.findall(source)


def in_order(sources: dict[str, str]) -> dict[str, str]:
    """`sources` in an order in which each module comes after all that it imports; `ValueError` for a cycle."""
    ordered: dict[str, str] = {}

    def visit(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            msg = f"ES modules import each other: {' -> '.join([*importers, name])}"
            raise ValueError(msg)
        if name not in ordered:
            for target in imports(sources[name]):
                visit(target, (*importers, name))
            ordered[name] = sources[name]

    for name in sources:
        visit(name, ())
    return ordered


@cache
def script(tabs: tuple[str, ...]) -> str:
    """The script of a panel with these tabs."""
    sources = in_order({path.name: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.rglob("*.js"))})
    packed = wire.packed(sources)
    digest = sha256(packed).hexdigest()[:16]
    return _LINKER % {"packed": b64encode(packed).decode(), "tabs": json.dumps(tabs), "digest": digest}


@cache
def style() -> str:
    sheets = sorted(_FOLDER.rglob("*.css"), key=lambda path: path.name)
    return "\n".join(path.read_text(encoding="utf-8") for path in sheets)
