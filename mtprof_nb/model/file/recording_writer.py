"""Writes a `Trace` as the file of a recording."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from typing import IO, TYPE_CHECKING, Any

from mtprof_nb.model.file import layout
from mtprof_nb.model.file.packed_columns import pack_column
from mtprof_nb.model.file.plain_values import json_form
from mtprof_nb.model.schema import Column, Record, schema_of
from mtprof_nb.model.trace import Trace

if TYPE_CHECKING:
    import numpy.typing as npt

#: Higher levels take several times as long, and save a tenth.
_LEVEL = 1


def write(trace: Trace, file: IO[bytes]) -> None:
    """Write all that `trace` holds to `file`, which is open for bytes. Equal traces give equal bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        _Writer(archive).write(trace)


class _Writer:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._needed = 0
        self._written = 0

    def write(self, trace: Trace) -> None:
        head = {"format": layout.FORMAT, "version": layout.VERSION}
        content = {**head, "trace": self._record("", trace)}
        # Any text there is, lone surrogates too, comes back as it was.
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=json_form)
        manifest = text.encode("utf-8", "surrogatepass")
        self._needed += layout.bytes_of_json(len(manifest))
        self._member(layout.MANIFEST, manifest)
        missing = layout.least_bytes(self._needed) - self._written
        if missing > 0:
            self._member(layout.PADDING, bytes(missing), zipfile.ZIP_STORED)

    def _record(self, name: str, record: Record) -> dict[str, Any]:
        schema = schema_of(type(record))
        firsts = [(one, self._column(name, schema.columns[one], values)) for one, values in record.columns.items()]
        length = len(next(iter(record.columns.values())))
        self._needed += layout.bytes_of_columns(type(record), length)
        others = [field.name for field in fields(record) if field.name not in schema.columns]  # type: ignore[arg-type]
        return {
            "rows": layout.Described(length, tuple(firsts)),
            "fields": {other: self._field(other, getattr(record, other)) for other in others},
        }

    def _column(self, name: str, column: Column, values: npt.NDArray[Any]) -> int | None:
        text, first = pack_column(column, values)
        self._member(layout.member_name(name, column), text)
        return first

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, Record):
            return self._record(name, value)
        # An object of JSON could have no keys but texts.
        return list(value.items()) if isinstance(value, Mapping) else value

    def _member(self, name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> None:
        info = zipfile.ZipInfo(name)
        info.compress_type = method
        self._archive.writestr(info, content, compresslevel=_LEVEL)
        self._written += info.compress_size
