"""The text of a file, block by block: plain or compressed with gzip, never more than a block of it in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from mtprof_nb.errors import LoadError

Progress = Callable[[float], None]

#: Bytes of text that are decoded at once: many, for speed, but few enough for the processor's cache.
BLOCK = 1 << 18
#: A file below this size is read in the thread that decodes it.
_SMALL = 1 << 16
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

    def blocks(self) -> Iterator[bytes]:
        """The text in blocks of `BLOCK` bytes or less."""
        with self._path.open("rb") as file:
            is_compressed = file.read(2) == _GZIP
            file.seek(0)
            blocks = self._decompressed(file) if is_compressed else self._plain(file)
            for block in blocks if self._size < _SMALL else _ahead(blocks):
                done = file.tell() / max(self._size, 1)
                yield block
                if self._progress is not None:
                    self._progress(min(done, 1.0))
        if self._progress is not None:
            self._progress(1.0)

    @staticmethod
    def _plain(file: BinaryIO) -> Iterator[bytes]:
        while block := file.read(BLOCK):
            yield block

    def _decompressed(self, file: BinaryIO) -> Iterator[bytes]:
        stream, taken, given, held = zlib.decompressobj(wbits=31), 0, 0, b""
        while True:
            held = held or file.read(BLOCK // 4)
            if stream.eof and held.lstrip(b"\0"):
                stream = zlib.decompressobj(wbits=31)
            if stream.eof or not held:
                break
            try:
                block = stream.decompress(held, BLOCK)
            except zlib.error as error:
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


def _ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks, each read by another thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, b"")
        while block := coming.result():
            coming = reader.submit(next, blocks, b"")
            yield block
