"""Processes, their collective calls, and what their events ran on: threads and streams of devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from mtprof_nb.model.schema import CheckedBy, PointsInto

#: The key of the metadata of a process under which torch describes its process group: a JSON object.
GROUP = "distributedInfo"
#: The key of the metadata of a process with its numbers of threads and processors: a JSON object.
THREADS = "mtprof_threads"


class Collective(NamedTuple):
    """A call in which all processes of a group take part; "" and -1 stand for what the runtime does not report."""

    name: str = ""
    group: str = ""
    group_size: int = -1
    dtype: str = ""
    in_elements: int = -1
    out_elements: int = -1


class Process(NamedTuple):
    """One recorded process. Two are the same where all but `metadata` is."""

    pid: int = 0
    #: Its rank in a distributed job, -1 where it is in none.
    rank: int = -1
    host: str = ""
    label: str = ""
    #: The user's, and facts of the process such as `THREADS`: pairs of key and JSON text.
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """The label and the rank, or where neither is known, the host and the number."""
        rank = f"rank {self.rank}" if self.rank >= 0 else ""
        return " ".join(filter(None, (self.label, rank))) or f"{self.host} process {self.pid}".lstrip()


def joined_metadata(processes: Sequence[Process]) -> dict[str, str]:
    """The metadata of all processes; the title of the process is before a key for which texts differ."""
    texts = Counter(key for key, _ in {pair for process in processes for pair in process.metadata})
    titles = Counter(process.title for process in processes)
    texts_by_key: dict[str, str] = {}
    for number, process in enumerate(processes):
        title = process.title if titles[process.title] == 1 else f"process {number}"
        texts_by_key |= {key if texts[key] == 1 else f"{title}, {key}": text for key, text in process.metadata}
    return texts_by_key


def check_device(device: str) -> None:
    """Raise `ValueError` unless `device` is a type and an index, or nothing."""
    if device and not device.rpartition(":")[2].isdecimal():
        msg = "it has no index behind a colon"
        raise ValueError(msg)


class Track(NamedTuple):
    """Events that ran one inside another or one after another: those of a thread, or of a stream of a device.

    Two tracks are the same where all but `number` is.
    """

    native_id: int
    name: str = ""
    #: "thread", "stream", or "async" for spans that overlap.
    kind: str = "thread"
    #: Position in `Trace.processes`.
    process: Annotated[int, PointsInto("processes", always=True)] = 0
    #: The device of a stream, as "CUDA:0"; "" for a thread.
    device: Annotated[str, CheckedBy(check_device)] = ""
    #: The number that the runtime itself gives a thread, -1 where it gives none.
    number: int = -1

    @property
    def title(self) -> str:
        """The name, or kind and native number where there is none: `thread 4321`."""
        return self.name or f"{self.kind} {self.native_id}"


def with_metadata(processes: tuple[Process, ...], metadata: Mapping[str, str]) -> tuple[Process, ...]:
    """`processes` with metadata of the first one added: key to JSON text."""
    first, *others = processes
    known = tuple({**dict(first.metadata), **metadata}.items())
    return (first._replace(metadata=known), *others)
