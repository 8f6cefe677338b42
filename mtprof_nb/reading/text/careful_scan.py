"""Decodes events one by one where a block of text is no list of events, and finds damaged places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

#: How an event begins.
_EVENT = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:')
_BETWEEN = re.compile(r"[\s,]*")
#: Numbers that C++ prints and JSON does not know.
_NO_NUMBER = re.compile(r"(?<=:)(\s*)(-?)(?:inf|nan)(?=\s*[,}\]])")
#: Times keep all their digits.
_STRICT, _LENIENT = (json.JSONDecoder(parse_float=Decimal, strict=is_strict) for is_strict in (True, False))
#: An event whose text is longer than this is taken for damage.
_LONGEST = 64 << 20
#: Characters after which the text that was used up is dropped.
_PIECE = 1 << 16
#: An error so near to the end of the text may be there because the text is not read to its end.
_NEAR = 16


class Damage(NamedTuple):
    """A place where the file is no JSON: its first byte, how many bytes were skipped, and the reason."""

    byte: int
    skipped: int
    reason: str


class DamageError(Exception):
    """A damaged place was found, and is not to be skipped."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage)
        self.damage = damage
        #: How many events were decoded before it, since the last ones that were given away.
        self.events_before = 0


def decoded(content: bytes) -> str:
    """Text of bytes; bytes that are no UTF-8 become lone surrogates, so that positions can be counted in bytes."""
    return content.decode("utf-8", "surrogateescape")


def byte_length(text: str) -> int:
    """How many bytes `decoded` made this text of."""
    return len(text.encode("utf-8", "surrogateescape"))


class TextBuffer:
    """The text of a file that is not decoded yet.

    It grows at its end by blocks of the file, and shrinks at its beginning as text is used up.
    """

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
            text = decoded(self.content[:count])
            self.no_text += count - len(text.encode("utf-8", "ignore"))
        self.content = self.content[count:]
        self.offset += count

    def rest(self, most: int) -> bytes:
        """The whole rest of the file, `most` bytes of it at most; the buffer is empty afterwards."""
        while len(self.content) < most and self.more():
            pass
        whole = self.content[:most]
        self.drop(len(self.content))
        return whole


@dataclass
class CarefulScan:
    """Takes events from a buffer, one by one. A damaged place is an error, or skipped with `skips_damage`."""

    buffer: TextBuffer
    skips_damage: bool
    damages: list[Damage] = field(default_factory=list)
    #: Events that JSON forbids and that could be read: with control characters in a text, or `inf` for a number.
    odd: int = 0
    #: Entries of the list that are no objects.
    no_events: int = 0
    #: Whether the last damaged place reaches to the end of the file.
    reaches_end: bool = False

    def take(self, least: int) -> tuple[list[dict[str, Any]], bool]:
        """Events of at least `least` bytes of text, and whether the list has ended, by its bracket or with the file."""
        events: list[dict[str, Any]] = []
        try:
            return events, self._take_into(events, self.buffer.offset + least)
        except DamageError as error:
            error.events_before = len(events)
            raise

    def _take_into(self, events: list[dict[str, Any]], end: int) -> bool:
        """Add events up to byte `end` of the file at least; whether the list has ended."""
        text, position = decoded(self.buffer.content), 0
        while self.buffer.offset < end:
            position = _behind(_BETWEEN, text, position)
            if position == len(text) or position > _PIECE:
                self._drop(text, position)
                text, position = text[position:], 0
                if not text and not self.buffer.more():
                    return True
                text = text or decoded(self.buffer.content)
            elif text[position] == "]":
                self._drop(text, position)
                return True
            else:
                entry, text, position = self._entry(text, position)
                if isinstance(entry, dict):
                    events.append(entry)
        self._drop(text, position)
        return False

    def _drop(self, text: str, position: int) -> None:
        self.buffer.drop(byte_length(text[:position]))

    def _byte(self, text: str, position: int) -> int:
        """The byte of the file at `position` of the buffer's text."""
        return self.buffer.offset + byte_length(text[:position])

    def _entry(self, text: str, position: int) -> tuple[Any, str, int]:
        """The entry at `position`, the text, which may have grown, and the position behind the entry."""
        while True:
            try:
                entry, end = self._parsed(text, position)
            except (ValueError, RecursionError) as error:
                if self._may_be_cut(error, text) and len(text) - position < _LONGEST:
                    self._drop(text, position)
                    grown = self.buffer.more()
                    text, position = decoded(self.buffer.content), 0
                    if grown:
                        continue
                text, position = self._skip(text, position, error)
                return None, text, position
            self.no_events += not isinstance(entry, dict)
            return entry, text, end

    def _parsed(self, text: str, position: int) -> tuple[Any, int]:
        """The entry at `position`, with replaced characters for bytes that are no UTF-8, and the position behind it."""
        entry, end = self._decoded(text, position)
        own = text[position:end]
        in_utf8 = own if own.isascii() else own.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return (entry if in_utf8 == own else self._decoded(in_utf8, 0)[0]), end

    def _decoded(self, text: str, position: int) -> tuple[Any, int]:
        try:
            return _STRICT.raw_decode(text, position)
        except json.JSONDecodeError as error:
            if "control character" not in error.msg and not _NO_NUMBER.search(text, position, error.pos + _NEAR):
                raise
            following = _EVENT.search(text, position + 1)
            own = text[position : following.start() if following else len(text)]
            entry, length = _LENIENT.raw_decode(_NO_NUMBER.sub(_same_length, own))
            self.odd += 1
            return entry, position + length

    def note(self, damage: Damage) -> None:
        """Keep a damaged place in mind, or raise it as an error."""
        if not self.skips_damage:
            raise DamageError(damage)
        self.damages.append(damage)

    @staticmethod
    def _may_be_cut(error: Exception, text: str) -> bool:
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()) - _NEAR

    def _skip(self, text: str, position: int, error: Exception) -> tuple[str, int]:
        """Note the damage at `position`, and go on where the next event begins."""
        reached = min(error.pos, len(text)) if isinstance(error, json.JSONDecodeError) else position
        byte, begin = self._byte(text, reached), self._byte(text, position)
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply, or a number too long"
        if not self.skips_damage:
            raise DamageError(Damage(byte, 0, reason))
        position += 1
        while not (following := _EVENT.search(text, position)):
            # An event may begin at the very end of the text.
            self._drop(text, max(len(text) - _NEAR, position))
            is_longer = self.buffer.more()
            text, position = decoded(self.buffer.content), 0
            if not is_longer:
                break
        self.reaches_end = following is None
        position = len(text) if following is None else following.start()
        self.note(Damage(byte, self._byte(text, position) - begin, reason))
        return text, position


def _behind(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _same_length(match: re.Match[str]) -> str:
    return f"{match[1]}{' ' if match[2] else ''}NaN"
