"""Writes the panel as one HTML file, which carries all that its tabs show, and fetches nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np

from mtprof_nb.comparison.compared import Compared
from mtprof_nb.export.atomic import replacing
from mtprof_nb.tables.writers.as_html import escaped
from mtprof_nb.views.comparison import comparison_html
from mtprof_nb.views.comparison.comparison_strip import comparison_strip
from mtprof_nb.views.panel import bundle, wire
from mtprof_nb.views.panel.show_comparison import comparison_scene
from mtprof_nb.views.panel.show_panel import bundle_of, full_strip
from mtprof_nb.views.panel.tabs import COMPARING, TabKind, tabs_of
from mtprof_nb.views.scene import Answer, Question, Scene
from mtprof_nb.views.selection import SOURCE, event_rows, recorded_groupings
from mtprof_nb.views.strip import Strip

_STYLE_ATTRIBUTE = re.compile(r""" style=(["'])(.*?)\1""")
# No script but the one with this hash, no style but those with these hashes, no request to anywhere.
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript><style>{static_style}</style>{static}</noscript>
{blocks}
<script type="module">{script}</script>
</body>
</html>
"""


def write(text: str, path: str | PathLike[str]) -> None:
    """Write a page to `path`."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def page(scene: Scene) -> str:
    """The panel of a recording as a page, with the tabs of its comparison, if there is one."""
    return _page_of(scene, tabs_of(scene), full_strip(scene), bundle_of(scene)["text/html"])


def comparison_page(compared: Compared, limit: int | None = None) -> str:
    """A comparison as a page; without scripts it has at most `limit` rows of each kind."""
    scene = comparison_scene(compared, limit)
    static = comparison_html.html(compared, limit)
    return _page_of(scene, COMPARING, comparison_strip(compared), static)


def _page_of(scene: Scene, kinds: Sequence[TabKind], strip: Strip, without_scripts: str) -> str:
    """The page of these tabs below a strip; where scripts are off, it shows the HTML `without_scripts`."""
    names = tuple(kind.name for kind in kinds)
    script = bundle.page_script(names)
    style, (static, static_style) = bundle.style(names, of_page=True), _classed(without_scripts)
    named = [{"name": kind.name, "title": kind.title} for kind in kinds]
    state = {"tabs": named, "strip": strip.written(), "ranks": []} | ({"opened": "memory"} if scene.memory_of else {})
    parts = {"state": state, **_content(scene, kinds)}
    return _PAGE.format(
        policy=_policy(script, style, static_style),
        title=escaped(strip.title),
        style=style,
        static=static,
        static_style=static_style,
        blocks="\n".join(_block(name, wire.packed(part)) for name, part in parts.items()),
        script=script,
    )


def _content(scene: Scene, kinds: Sequence[TabKind]) -> dict[str, Answer]:
    """The initial content of each tab, and the answers that its ES module asks for, by question."""
    tabs = {kind.name: kind.make(scene) for kind in kinds}
    first = {name: tab.first() for name, tab in tabs.items()}
    carried = {
        name: {_key(asked): tab.answer({**asked, "coarse": True}) for asked in tab.carried()}
        for name, tab in tabs.items()
    }
    if "operators" in carried:
        # Events of a comparison are of two recordings: none of them selects a row.
        own = first.keys() - {kind.name for kind in COMPARING}
        shown = [[first[name], carried[name]] for name in own]
        events = np.unique(np.fromiter(_events(shown), np.int64))
        for grouping in (*recorded_groupings(scene.trace), SOURCE):
            rows = event_rows(scene, grouping, events[events >= 0])
            carried["operators"][_key({"ask": "events", "grouping": grouping})] = rows
    return {
        **{f"first-{name}": content for name, content in first.items()},
        **{f"carried-{name}": wire.with_deltas(content) for name, content in carried.items()},
    }


def _key(question: Question) -> str:
    """A question as the page finds its answer: the values of its fields in their order."""
    return "-".join(map(str, question.values()))


def _events(value: Any) -> Iterator[int]:
    """The events that an answer names: its fields and columns `event`."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "event":
                yield from part if isinstance(part, list) else [part]
            else:
                yield from _events(part)
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for part in value:
            yield from _events(part)


def _block(name: str, packed: bytes) -> str:
    """A packed part of the content as a script element that no browser runs, because its type is no script's."""
    return f'<script type="application/mtprof" data-mtprof="{name}">{b64encode(packed).decode()}</script>'


def _classed(html: str) -> tuple[str, str]:
    """`html` with classes in place of style attributes, which the policy forbids, and the style sheet of these."""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return f' class="{names.setdefault(match[2], f"static-{len(names)}")}"'

    classed = _STYLE_ATTRIBUTE.sub(named, html)
    return classed, "".join(f".{name}{{{style}}}" for style, name in names.items())


def _policy(script: str, *styles: str) -> str:
    """A content policy that allows these texts, pictures inside the page, and nothing else."""

    def hashed(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    allowed = " ".join(map(hashed, styles))
    return (
        f"default-src 'none'; script-src {hashed(script)}; style-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
