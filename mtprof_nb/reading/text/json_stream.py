"""The events of a Chrome trace, block by block.

A block of text is cut where an event seems to end, and its events are decoded together. The cut was right if the text
between two cuts is a list of events: a cut inside an event leaves a bracket or a quote open. Where it is none, events
are decoded one by one (`careful_scan`), which also finds the place where a file is damaged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from mtprof_nb.reading.text.careful_scan import CarefulScan, Damage, TextBuffer, byte_length, decoded
from mtprof_nb.reading.text.event_records import Batch, Decoder, HowOf, Wanted, json_decoder
from mtprof_nb.reading.text.plain_json import PlainDecoder, batches_of

#: How an event ends and the next one begins.
_CUT = re.compile(rb'\}(\s*,\s*)\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|bp|s)"\s*:')
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
#: Text around the events that is held at most.
_LONGEST = 256 << 20
#: How many times the beginning of the list of events is looked for.
_MOST_TRIES = 16
#: Bytes in which the key of the list and its bracket stand.
_NEAR = 64
_LENIENT = json.JSONDecoder(strict=False)


class NoTraceError(Exception):
    """The file is JSON, but has no events; `members` has the names of what it has."""

    def __init__(self, members: Iterable[str]) -> None:
        super().__init__()
        self.members = list(members)


def best_decoder() -> Decoder:
    """The decoder of msgspec where it is installed, else that of the standard library."""
    if find_spec("msgspec") is None:
        return PlainDecoder()
    from mtprof_nb.reading.text.fast_json import FastDecoder

    return FastDecoder()


@dataclass(frozen=True)
class Part:
    """Events that were decoded together."""

    batches: list[Batch]
    #: Decodes the events again, with all digits of their times; None where there are no more digits.
    again: Callable[[], list[Batch]] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    def with_digits(self) -> Part:
        """The events with all digits of their times."""
        return self if self.again is None else Part(self.again())


class EventStream:
    """Reads the events of one file; `DamageError` where it is no JSON, unless `skips_damage`."""

    def __init__(self, blocks: Iterator[bytes], decoder: Decoder, how: HowOf, *, skips_damage: bool = False) -> None:
        self._decoder = decoder
        self._how = how
        self._buffer = TextBuffer(blocks)
        #: Finds damaged places, and counts what is not quite JSON.
        self.scan = CarefulScan(self._buffer, skips_damage)
        #: Requests for the next parts.
        self.wanted = Wanted()
        #: Members of the file beside its events; complete after the last part.
        self.document: dict[str, Any] = {}
        self.is_bare_list = False
        #: Whether the list of events has its closing bracket.
        self.is_closed = False
        #: Bytes behind the end of the trace.
        self.trailing = 0
        self.has_second_list = False

    def parts(self) -> Iterator[Part]:
        """The events in the order of the file."""
        if not self._open():
            return
        ended = False
        while not ended:
            cut = self._last_cut()
            if cut is None and self._buffer.more() and len(self._buffer) < _LONGEST:
                continue
            part, ended = self._fast_part(cut) if cut else (None, False)
            if part is None:
                entries, ended = self.scan.take(cut.start() + 1 if cut else max(len(self._buffer), 1))
                part = Part(batches_of(entries, self._how))
            yield part
            # The next part fits into the processor's cache if this one has left it.
            del part
        self._close()

    def _last_cut(self) -> re.Match[bytes] | None:
        """Where the last complete event of the buffer seems to end."""
        content, end = self._buffer.content, len(self._buffer)
        for _ in range(64):
            end = content.rfind(b"}", 0, end)
            cut = _CUT.match(content, end) if end >= 0 else None
            if cut or end < 0:
                return cut
        return None

    def _fast_part(self, cut: re.Match[bytes]) -> tuple[Part | None, bool]:
        text = b"".join((b"[", memoryview(self._buffer.content)[: cut.start() + 1], b"]"))
        for decoder in (self._decoder, PlainDecoder()):
            decoded_again = partial(decoder.batches, text, self._how, self.wanted._replace(digits=True))
            try:
                batches = decoder.batches(text, self._how, self.wanted)
            except (ValueError, RecursionError):
                continue
            self._buffer.drop(cut.end(1))
            return Part(batches, None if self.wanted.digits else decoded_again), False
        return None, False

    def _open(self) -> bool:
        """Go to the first event; False if the file has a list of events nowhere."""
        buffer = self._buffer
        while buffer.more() and not buffer.content.lstrip(_SPACE):
            buffer.drop(len(buffer))
        mark = len(_BYTE_ORDER_MARK) if buffer.content.startswith(_BYTE_ORDER_MARK) else 0
        buffer.drop(len(buffer) - len(buffer.content[mark:].lstrip(_SPACE)))
        if buffer.content.startswith(b"["):
            buffer.drop(1)
            self.is_bare_list = True
            return True
        first: re.Match[bytes] | None = None
        position = 0
        for _ in range(_MOST_TRIES):
            begin = self._search(position)
            if begin is None:
                break
            first, position = first or begin, begin.end()
            try:
                self.document = _members(buffer.content[: begin.end()] + b"]}")
            except (ValueError, RecursionError):
                continue
            buffer.drop(begin.end())
            return True
        self._complain(first)
        if first is not None:
            buffer.drop(first.end())
        return first is not None

    def _search(self, position: int) -> re.Match[bytes] | None:
        """The next place where the list of events may begin; the buffer then holds all text before it."""
        while not (begin := _LIST.search(self._buffer.content, position)):
            position = max(position, len(self._buffer) - _NEAR)
            if len(self._buffer) > _LONGEST or not self._buffer.more():
                return None
        return begin

    def _complain(self, first: re.Match[bytes] | None) -> None:
        """Note why the text before the events is no JSON; `NoTraceError` if there are no events."""
        content = self._buffer.content if first is None else self._buffer.content[: first.end()] + b"]}"
        try:
            members = _members(content)
        except json.JSONDecodeError as error:
            byte = self._buffer.offset + byte_length(decoded(content)[: error.pos])
            damage = Damage(byte, len(content) if first is None else first.end(), error.msg)
        except (ValueError, RecursionError) as error:
            damage = Damage(self._buffer.offset, len(content), str(error))
        else:
            raise NoTraceError(members)
        self.scan.note(damage)

    def _close(self) -> None:
        """Read the members behind the events."""
        self.is_closed = self._buffer.content.startswith(b"]")
        if not self.is_closed:
            if not self.is_bare_list and not self.scan.reaches_end:
                self.scan.note(Damage(self._buffer.offset, 0, "the file ends early"))
            return
        begin, rest = self._buffer.offset, self._buffer.rest(_LONGEST)[1:]
        if self.is_bare_list:
            self.trailing = len(rest.strip(_SPACE))
            return
        opening = '{"traceEvents":0'
        text = opening + decoded(rest)
        try:
            members, end = _LENIENT.raw_decode(text)
        except (ValueError, RecursionError) as error:
            reached = error.pos - len(opening) if isinstance(error, json.JSONDecodeError) else 0
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            byte = begin + 1 + byte_length(text[len(opening) : len(opening) + max(reached, 0)])
            self.scan.note(Damage(byte, len(rest), reason))
            return
        self.trailing = len(text[end:].strip())
        self.has_second_list = members.pop("traceEvents") != 0
        self.document |= members


def _members(text: bytes) -> dict[str, Any]:
    """The members of a JSON object, `traceEvents` left out."""
    try:
        members = json_decoder()(text)
    except ValueError:
        members = _LENIENT.decode(decoded(text))
    if not isinstance(members, dict):
        msg = "the file is neither an object nor a list"
        raise ValueError(msg)
    members.pop("traceEvents", None)
    return members
