"""The part of a file's text that is not decoded yet."""

from __future__ import annotations

from collections.abc import Iterator


class TextBuffer:
    """Grows at its end by blocks of the file, and shrinks at its beginning as text is used up."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.content = b""
        #: The position in the file's text of the first byte of `content`.
        self.offset = 0
        #: How many bytes of the text that was used up are no UTF-8.
        self.no_text = 0

    def __len__(self) -> int:
        return len(self.content)

    def more(self) -> bool:
        """Add blocks until the content has doubled at least; False if the file has ended."""
        blocks = [block for block in [next(self._blocks, b"")] if block]
        wanted = len(self.content)
        while blocks and sum(map(len, blocks)) < wanted and (block := next(self._blocks, b"")):
            blocks.append(block)
        self.content = b"".join([self.content, *blocks])
        return bool(blocks)

    def drop(self, count: int) -> None:
        """Remove `count` bytes at the beginning: whole characters."""
        if not self.content.isascii():
            self.no_text += _no_text(self.content[:count])
        self.content = self.content[count:]
        self.offset += count

    def rest(self, most: int) -> bytes:
        """The whole rest of the file, `most` bytes of it at most; the buffer is empty afterwards."""
        while len(self.content) < most and self.more():
            pass
        whole = self.content[:most]
        self.drop(len(self.content))
        return whole


def _no_text(content: bytes) -> int:
    """How many bytes are part of no character."""
    text = content.decode("utf-8", "surrogateescape")
    return len(content) - len(text.encode("utf-8", "ignore"))
