"""Reads a Chrome trace of any dialect."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mtprof_nb.building.paused_collector import collector_paused
from mtprof_nb.errors import LoadError
from mtprof_nb.model.trace import Trace
from mtprof_nb.reading.columns.chosen_spans import chosen_spans
from mtprof_nb.reading.columns.chrome_build import build_trace
from mtprof_nb.reading.dialects.ascend import ASCEND
from mtprof_nb.reading.dialects.kineto import KINETO
from mtprof_nb.reading.dialects.xla import XLA
from mtprof_nb.reading.spans.collector import Collector
from mtprof_nb.reading.spans.span_facts import FactReader, how_of
from mtprof_nb.reading.text.careful_scan import Damage, DamageError
from mtprof_nb.reading.text.event_records import Decoder
from mtprof_nb.reading.text.json_stream import EventStream, NoTraceError, best_decoder
from mtprof_nb.reading.text.other_files import other_file, other_json
from mtprof_nb.reading.text.text_source import Progress, TextSource

#: The first dialect that recognises a file reads it. Kineto's, the last one, takes every file.
DIALECTS = (XLA, ASCEND, KINETO)
#: Bytes of an array that is freed at once.
_KEPT = 8 << 20


@collector_paused()
def read(
    path: Path, *, partial: bool = False, progress: Progress | None = None, decoder: Decoder | None = None
) -> Trace:
    """The recording in a Chrome trace: Kineto's, Ascend's or an export of this package, plain or compressed.

    `LoadError` where the file is no trace, or is damaged: its message has the byte, and the number of
    events before it.
    With `partial`, the events that can be read are returned, with a note of the damage. `progress` is called with the
    fraction of the file that was read.
    """
    _keep_freed_memory()
    source = TextSource(path, progress)
    stream = EventStream(source.blocks(), decoder or best_decoder(), how_of, skips_damage=partial)
    collector = Collector(stream, FactReader())
    try:
        collector.run()
    except NoTraceError as error:
        what, remedy = other_json(error.members)
        msg = f"{path}: the file is {what}: {remedy}"
        raise LoadError(msg) from None
    except DamageError as error:
        raise LoadError(_message(path, error.damage, source, collector.count + error.events_before)) from None
    if not collector.has_events and (collector.count or stream.scan.no_events):
        msg = f"{path}: the file is a list, but not of events: load a trace that a profiler exported"
        raise LoadError(msg)
    return build_trace(chosen_spans(collector, stream.document, path, DIALECTS), _notes(stream, source))


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of freed arrays for the next ones, as it does once a large one was freed.

    Else it gives each back to the system, and the next one takes new pages, which cost more than most work on them.
    """
    np.empty(_KEPT, np.uint8)


def _message(path: Path, damage: Damage, source: TextSource, count: int) -> str:
    why = source.broken_end or damage.reason
    if not count and not source.broken_end and (known := other_file(source.beginning)):
        return f"{path}: the file is no trace: it is {known[0]}. {known[1][0].upper()}{known[1][1:]}"
    if damage.byte == 0:
        return f"{path}: the file is no trace ({why}): name a file that save() wrote, or that a profiler exported"
    return (
        f"{path}: the text is damaged at byte {damage.byte:,}{source.counted_in} ({why}). {_count(count, 'event')} "
        "before it can be read: load it with partial=True to get what is readable, or export it again"
    )


def _notes(stream: EventStream, source: TextSource) -> list[str]:
    notes, damages = list[str](), stream.scan.damages
    if damages:
        first = damages[0]
        skipped = sum(damage.skipped for damage in damages)
        why = source.broken_end or first.reason
        notes.append(
            f"The file is damaged in {_count(len(damages), 'place')}, first at byte {first.byte:,}"
            f"{source.counted_in} ({why}): {_count(skipped, 'byte')} skipped."
        )
    elif stream.is_bare_list and not stream.is_closed:
        notes.append("The list of events has no end: the file may be cut.")
    if source.broken_end and not damages:
        notes.append(f"Behind the end of the trace, {source.broken_end}.")
    if stream.has_second_list:
        notes.append("The file has a second list `traceEvents`, left out.")
    counts = {
        "Events that are not quite JSON, read as they are meant": stream.scan.odd,
        "Bytes that are no UTF-8, replaced": stream.scan.buffer.no_text,
        "Entries of the list that are no events, left out": stream.scan.no_events,
        "Characters behind the end of the trace, left out": stream.trailing,
    }
    return notes + [f"{what}: {count:,}." for what, count in counts.items() if count]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
