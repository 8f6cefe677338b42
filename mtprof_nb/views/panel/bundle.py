"""Bundles the panel's ES modules into one script."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from mtprof_nb.views.panel import wire

_VIEWS = Path(__file__).parents[1]
_IMPORT = re.compile(r'^import (\{.*?\}) from "\.[\w./-]*/([\w-]+\.js)";$', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
#: Comments and indentation: for readers of the source, not of the script.
#: No text in a module has several lines.
_FOR_READERS = re.compile(r"^ *//[^\n]*\n|/\*\*(?:(?!\*/).)*\*/\s?|^ +", re.MULTILINE | re.DOTALL)
_CSS_COMMENT = re.compile(r"/\*(?:(?!\*/).)*\*/", re.DOTALL)
_CSS_SPACE = re.compile(r"\s*([{};,])\s*|\s+")

# A notebook saves the script with every panel, so it is compressed; one copy serves all panels of a page.
_LOADER = """\
const packed = "%(packed)s";

async function load() {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const source = await new Response(plain).json();
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return (await import(url)).render;
}

const loaded = (globalThis[Symbol.for("mtprof_nb %(digest)s")] ??= load());
export default { render: async (context) => (await loaded)(context) };
"""


def imports(source: str) -> list[str]:
    """The modules that an ES module imports."""
    return [target for _, target in _IMPORT.findall(source)]


def by_imports(sources: dict[str, str]) -> dict[str, str]:
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


def linked(sources: dict[str, str]) -> str:
    """ES modules as one script, in which `modules` has what each exports, by its file name.

    It runs where a content policy forbids to import from elsewhere.
    """
    parts = (_scoped(name, source) for name, source in by_imports(sources).items())
    return "\n".join(["const modules = {};", *parts, ""])


def _scoped(name: str, source: str) -> str:
    """One module as a function of its own, so that its names stay its own."""
    exported = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", _IMPORT.sub(r'const \1 = modules["\2"];', _FOR_READERS.sub("", source)))
    return f'modules["{name}"] = (() => {{\n{body}return {{ {exported} }};\n}})();'


@cache
def panel_script(tabs: tuple[str, ...]) -> str:
    """The modules of a widget, and a function `render` that draws a panel of these tabs."""
    render = f'const render = (context) => modules["panel.js"].render(context, {_named(tabs)});\n'
    return linked(_sources("panel.js", *(f"{name}.js" for name in tabs))) + render


@cache
def page_script(tabs: tuple[str, ...]) -> str:
    """The modules of a page, and a call that draws a panel of these tabs, which the page around it carries."""
    entries = ("page.js", *(f"{name}.js" for name in tabs))
    return f'{linked(_sources(*entries))}modules["page.js"].start({_named(tabs)});\n'


def _named(tabs: tuple[str, ...]) -> str:
    """An object with the module of each tab."""
    members = (f'{json.dumps(name)}: modules["{name}.js"]' for name in tabs)
    return f"{{ {', '.join(members)} }}"


@cache
def _files(suffix: str) -> dict[str, Path]:
    """The files of the panel with a suffix by name, in order of their names."""
    return {path.name: path for path in sorted(_VIEWS.rglob(f"*{suffix}"), key=lambda path: path.name)}


def _sources(*entries: str) -> dict[str, str]:
    """The ES modules `entries` and all that they import, by name."""
    sources: dict[str, str] = {}
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = _files(".js")[name].read_text("utf-8")
            waiting += imports(sources[name])
    return dict(sorted(sources.items()))


@cache
def script(tabs: tuple[str, ...]) -> str:
    """The script of a panel with these tabs as a widget: an ES module, compressed."""
    packed = wire.packed(f"{panel_script(tabs)}export {{ render }};\n")
    digest = sha256(packed).hexdigest()[:16]
    return _LOADER % {"packed": b64encode(packed).decode(), "digest": digest}


@cache
def style(tabs: tuple[str, ...], of_page: bool = False) -> str:
    """The style sheets of a widget with these tabs, or of a page."""
    shared = _VIEWS / "web"
    folders = {_VIEWS / "tabs" / name for name in tabs} | ({shared / "page"} if of_page else set())
    chosen = (
        path
        for path in _files(".css").values()
        if path.parent in folders or (path.is_relative_to(shared) and path.parent.name != "page")
    )
    written = _CSS_COMMENT.sub("", "\n".join(path.read_text("utf-8") for path in chosen))
    return _CSS_SPACE.sub(lambda space: space[1] or " ", written)
