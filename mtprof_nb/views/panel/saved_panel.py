"""A script that draws the panel in place of its page without scripts, where no widget does.

A notebook that is opened again without the state of its widgets has no widget to show. A frontend that trusts the
notebook runs the script in its outputs, which holds what the panel shows first. It is an output of its own: a notebook
that is converted to Markdown, or sanitized, leaves it out.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from mtprof_nb.views.panel import bundle, wire

# JupyterLab writes an error where a widget is gone, and never takes the HTML of the same output instead. Therefore the
# widget between page and script is hidden as long as it shows no panel: it is gone, or it is loading. A widget is the
# one kind of output whose element names no mime type.
_STYLE = """\
.jp-OutputArea-child:has(> .jp-RenderedHTML > [data-mtprof-page]) +
.jp-OutputArea-child:has(> .jp-OutputArea-output:not([data-mime-type])):not(:has(.mtprof)),
.jp-OutputArea-child:has(> .jp-RenderedHTML > [data-mtprof-page]) + * +
.jp-OutputArea-child:has(> .jp-RenderedJavaScript) { display: none }
"""
# While the widget lives, its style hides the page, which then never comes into view. If the page is in view after a
# while in which a widget would have come, and JupyterLab is loading none, the panel is drawn in place of the page.
_SCRIPT = """\
((output) => {
  const parts = %(parts)s;
  const placed = () => document.querySelector('[data-mtprof-page="%(page)s"]');
  const styled = (text) => Object.assign(document.createElement("style"), { textContent: text });
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
  const unpacked = (name) =>
    new Response(new Blob([bytes(parts[name])]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  const once = (element, act) =>
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      act();
    }).observe(element);
  const draw = async (page) => {
    const [source, style, state] = await Promise.all(["script", "style", "state"].map(unpacked));
    const { render } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    const first = Object.fromEntries(state.held.map((name) => [name, bytes(parts[`first-${name}`])]));
    const get = (key) => ({ ...state, first, page: "" })[key];
    const send = () => {
      throw new Error("no kernel");
    };
    const el = document.createElement("div");
    await render({ model: { get, on() {}, send }, el });
    for (const child of page.children) child.hidden = true;
    page.append(styled(style), el);
  };
  document.head.append(styled(%(style)s));
  const isComing = (page) => {
    const next = page.closest(".jp-OutputArea-child")?.nextElementSibling;
    return next?.querySelector(".jp-OutputArea-output:not([data-mime-type]):not(.jupyter-widgets)") != null;
  };
  const drawSoon = () => {
    const page = placed();
    if (page && isComing(page)) setTimeout(drawSoon, 500);
    else if (page) once(page, () => draw(page).catch(() => null));
    return page;
  };
  // A notebook may run the script long before it attaches the outputs.
  setTimeout(() => drawSoon() ?? once(output, drawSoon), 2000);
})(element[0] ?? element);
"""


def panel_page(page: str, html: str) -> str:
    """The page without scripts, under the id by which its widget hides it and `panel_script` finds it."""
    return f'<div data-mtprof-page="{page}">{html}</div>'


def saved_panel(page: str, tabs: list[dict[str, str]], strip: dict[str, Any], first: Mapping[str, bytes]) -> str:
    """The script of a panel with the id `page`, and the `first` content of its tabs."""
    state = {"tabs": tabs, "strip": strip, "ranks": [], "held": list(first)}
    names = tuple(tab["name"] for tab in tabs)
    parts = {
        "script": wire.packed(f"{bundle.panel_script(names)}export {{ render }};\n"),
        "style": wire.packed(bundle.style(names)),
        "state": wire.packed(state),
        **{f"first-{name}": content for name, content in first.items()},
    }
    written = json.dumps({name: b64encode(part).decode() for name, part in parts.items()})
    return _SCRIPT % {"parts": written, "page": page, "style": json.dumps(_STYLE)}
