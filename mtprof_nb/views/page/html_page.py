"""Writes the panel as one HTML file, which carries all that its tabs show, and fetches nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.export.atomic import replacing
from mtprof_nb.views.escaped_text import escaped
from mtprof_nb.views.page.deltas import with_deltas
from mtprof_nb.views.panel import bundle, wire
from mtprof_nb.views.panel.tabs import tabs_of
from mtprof_nb.views.scene import Answer, Scene
from mtprof_nb.views.selection import rows_of_events
from mtprof_nb.views.static import static_page
from mtprof_nb.views.strip import strip_of

_STYLE_ATTRIBUTE = re.compile(r' style="([^"]*)"')
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


def write(scene: Scene, path: str | PathLike[str]) -> None:
    """Write the page of `scene` to `path`."""
    text = page(scene)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def page(scene: Scene) -> str:
    """The page as text."""
    kinds = tabs_of(scene)
    strip = strip_of(scene.trace, scene.name, scene.status)
    names = tuple(kind.name for kind in kinds)
    script = bundle.page_script(names)
    style, (static, static_style) = bundle.style(names, of_page=True), _classed(static_page.html(scene))
    state = {"tabs": [{"name": kind.name, "title": kind.title} for kind in kinds], "strip": strip.written()}
    parts = {"state": state, **_content(scene)}
    return _PAGE.format(
        policy=_policy(script, style, static_style),
        title=escaped(strip.title),
        style=style,
        static=static,
        static_style=static_style,
        blocks="\n".join(_block(name, wire.packed(part)) for name, part in parts.items()),
        script=script,
    )


def _content(scene: Scene) -> dict[str, Answer]:
    """The initial content of each tab and what it carries, and the rows of all events in them."""
    tabs = {kind.name: kind.make(scene) for kind in tabs_of(scene)}
    first = {f"first-{name}": tab.first() for name, tab in tabs.items()}
    carried = {f"carried-{name}": tab.carried() for name, tab in tabs.items()}
    events = np.unique(np.fromiter(_events([first, carried]), np.int64))
    carried["rows"] = _rows(scene, events[events >= 0])
    return {**first, **{name: with_deltas(part) for name, part in carried.items()}}


def _rows(scene: Scene, events: Any) -> Answer:
    """The rows that select each of `events`, by grouping, and the line that caused it."""
    return {
        "events": events.tolist(),
        "rows": {grouping: row[events].tolist() for grouping, row in rows_of_events(scene).items()},
        "lines": attribution(scene.trace).line[events].tolist(),
    }


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

    def named(found: re.Match[str]) -> str:
        return f' class="{names.setdefault(found[1], f"static-{len(names)}")}"'

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
