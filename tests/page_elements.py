"""Reads the elements of an exported page, and the packed parts in it."""

import json
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from typing import Any


class Elements(HTMLParser):
    """The elements of a page, with the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_data(self, data: str) -> None:
        if self._inside in self.texts:
            self.texts[self._inside][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def parts(self) -> dict[str, Any]:
        """The packed parts by name."""
        scripts = zip([given for tag, given in self.found if tag == "script"], self.texts["script"], strict=True)
        return {
            str(given["data-mtprof"]): json.loads(zlib.decompress(b64decode(text)))
            for given, text in scripts
            if "data-mtprof" in given
        }
