"""The members of a recording's file, read with limits that the file cannot raise."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections import Counter
from typing import IO, Any

from mtprof_nb.model.file import layout
from mtprof_nb.model.file.layout import refuse

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
#: Errors of `zipfile` and `zlib` for bytes that are no zip file.
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError),
    *(NotImplementedError, RuntimeError, OverflowError, KeyError),
)


class Archive:
    """An open file. `need` counts the memory that it asks for, and fails before a member is read that is too much."""

    def __init__(self, file: IO[bytes]) -> None:
        self._size = file.seek(0, os.SEEK_END)
        self._needed = 0
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGES as error:
            refuse(f"it is cut short, or no zip file ({error})")
        members = self._zip.infolist()
        names = Counter(member.filename for member in members)
        if any(count > 1 for count in names.values()):
            refuse(f"the member {names.most_common(1)[0][0]!a} is there twice")
        self._members = {member.filename: member for member in members}
        #: Names of members that were not read so far.
        self.unread = set(self._members) - {layout.PADDING}

    def need(self, count: int) -> None:
        """Count `count` more bytes of memory; `MalformedError` if the file is too small to hold as much."""
        self._needed += count
        if layout.least_bytes(self._needed) > self._size:
            refuse(f"its {self._size:,} bytes claim to hold {self._needed:,} bytes or more")

    def read(self, name: str, most: int | None = None) -> bytes:
        """A whole member; `MalformedError` if it has more than `most` bytes."""
        member = self._members.get(name)
        if member is None:
            refuse(f"the member {name} is missing")
        self.unread.discard(name)
        if member.compress_type not in _METHODS or member.flag_bits & _ENCRYPTED:
            refuse(f"the member {name} is encrypted or compressed in an unknown way")
        if most is not None and member.file_size > most:
            refuse(f"the member {name} has {member.file_size:,} bytes, not {most:,} or less")
        return self._content(member)

    def read_manifest(self) -> Any:
        """The JSON of the file."""
        if layout.MANIFEST not in self._members:
            refuse(
                "it is a zip file without a recording",
                "unpack it if it holds traces, and load those; else save it again",
            )
        self.need(layout.bytes_of_json(self._members[layout.MANIFEST].file_size))
        text = self.read(layout.MANIFEST)
        try:
            return json.loads(text.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            refuse(f"{layout.MANIFEST} is no JSON ({error})")

    def _content(self, member: zipfile.ZipInfo) -> bytes:
        try:
            with self._zip.open(member) as stream:
                # Without a number, all that is compressed would be expanded, whatever size the member declares.
                content = stream.read(member.file_size + 1)
        except _DAMAGES as error:
            refuse(f"the member {member.filename!a} is damaged ({error})")
        if len(content) != member.file_size:
            refuse(f"the member {member.filename!a} is cut short")
        return content
