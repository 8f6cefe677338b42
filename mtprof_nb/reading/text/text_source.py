"""The text of a file, block by block: plain or compressed with gzip, never more than a block of it in memory."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from mtprof_nb.errors import LoadError
from mtprof_nb.reading.text.other_files import LENGTH

Progress = Callable[[float], None]

#: Bytes of text that are decoded at once: many, for speed, but few enough for the processor's cache.
BLOCK = 1 << 18
_GZIP = b"\x1f\x8b"
#: Text beyond this size may not be larger than so many times its compressed form. Traces reach 30 to 60.
_UNCHECKED, _MOST_EXPANSION = 64 << 20, 250


class TextSource:
    """Blocks of the text of a file."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self._path = path
        self._progress = progress
        self._size = path.stat().st_size
        #: Why the text ended before its end; "" if it did not.
        self.broken_end = ""
        #: The first bytes of the text.
        self.beginning = b""
        #: Of which text bytes are counted, if it is not that of the file; "" if it is.
        self.counted_in = ""

    def blocks(self) -> Iterator[bytes]:
        """The text in blocks of `BLOCK` bytes or less."""
        with self._path.open("rb") as file:
            is_compressed = file.read(2) == _GZIP
            file.seek(0)
            plain = self._decompressed(file) if is_compressed else iter(partial(file.read, BLOCK), b"")
            # No thread reads ahead: it would wait for the interpreter lock as long as it could save.
            for block in self._in_utf8(plain):
                done = file.tell() / max(self._size, 1)
                yield block
                if self._progress is not None:
                    self._progress(min(done, 1.0))
        if self._progress is not None:
            self._progress(1.0)

    def _in_utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The blocks, translated where they are UTF-16 or UTF-32, as a Windows shell writes what it redirects."""
        first = next(blocks, b"")
        self.beginning = first[:LENGTH]
        encoding = json.detect_encoding(first[:4]).removesuffix("-sig")
        if encoding == "utf-8":
            yield from chain([first] if first else [], blocks)
            return
        self.counted_in = f" of its text in UTF-8, which is {encoding.upper()} in the file"
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        translated = (decoder.decode(block).encode("utf-8", "replace") for block in chain([first], blocks))
        yield from filter(None, translated)
        yield from filter(None, [decoder.decode(b"", final=True).encode("utf-8", "replace")])

    def _decompressed(self, file: BinaryIO) -> Iterator[bytes]:
        library = _fastest_zlib()
        stream, taken, given, held = library.decompressobj(wbits=31), 0, 0, b""
        while True:
            held = held or file.read(BLOCK // 4)
            if stream.eof and held.lstrip(b"\0"):
                stream = library.decompressobj(wbits=31)
            if stream.eof or not held:
                break
            try:
                block = stream.decompress(held, BLOCK)
            except library.error as error:
                self.broken_end = f"compressed byte {taken:,} is damaged ({error})"
                return
            left = stream.unused_data if stream.eof else stream.unconsumed_tail
            taken, given, held = taken + len(held) - len(left), given + len(block), left
            if given > _UNCHECKED and given > _MOST_EXPANSION * taken:
                msg = (
                    f"{self._path}: {taken:,} compressed bytes expand to more than {given:,}, which no trace does; "
                    "decompress the file with a tool that you trust, and load the result"
                )
                raise LoadError(msg)
            if block:
                yield block
        if not stream.eof:
            self.broken_end = f"the compressed data end early, at byte {taken:,}"


def _fastest_zlib() -> Any:
    """The module of isal where it is installed, which has the interface of `zlib` and is three times as fast."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib
