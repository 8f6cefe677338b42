"""Names, limits and the error that writer and reader of a recording's file share."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from mtprof_nb.model.schema import Column, Record, schema_of

FORMAT = "mtprof_nb recording"
#: Raised when files are laid out in another way. A new column or table needs no other version: its name is enough.
VERSION = 1
#: The member with everything but columns.
MANIFEST = "recording.json"
#: A member without meaning: a file is never smaller than `least_bytes` of what it holds.
PADDING = "padding"

#: A file may always fill so much memory, and so many times its own size.
_ALLOWANCE = 64 << 20
_EXPANSION = 256
#: Objects that JSON becomes take at most about so many times its size.
_JSON_EXPANSION = 24


class Described(NamedTuple):
    """A record in the manifest: its length, and each column with the first value if it holds steps."""

    length: int
    columns: tuple[tuple[str, int | None], ...]


class MalformedError(Exception):
    """A part of a file is not as it was written: what is wrong, and where. `remedy` is what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def refuse(problem: str, remedy: str = "copy the file again, or save the recording again") -> NoReturn:
    """Raise `MalformedError`."""
    raise MalformedError(problem, remedy) from None


def member_name(record_name: str, column: Column) -> str:
    """The member with a column of the record in the field `record_name`, "" for the trace itself."""
    return f"{record_name}/{column.name}.npy" if record_name else f"{column.name}.npy"


def bytes_of_columns(record: type[Record], length: int) -> int:
    """Memory of all columns that a record of this length may have."""
    return length * sum(column.dtype.itemsize for column in schema_of(record).columns.values())


def bytes_of_json(size: int) -> int:
    """Memory of what JSON of this size becomes."""
    return size * _JSON_EXPANSION


def least_bytes(needed: int) -> int:
    """The size of a file that may need so much memory: a small file cannot fill all memory there is."""
    return max(-(-(needed - _ALLOWANCE) // _EXPANSION), 0)
