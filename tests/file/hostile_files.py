"""Files of recordings, taken apart and put together in ways that `save` never would."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from mtprof_nb.model.file.recording_writer import write
from mtprof_nb.model.trace import Trace

Members = dict[str, bytes]
MANIFEST = "recording.json"
#: Bytes of a column before its numbers.
_HEADER = 128
#: Values of JSON in place of others.
_STRANGE = (
    None,
    True,
    0,
    -1,
    1 << 40,
    -(1 << 63),
    1 << 70,
    1.5,
    float("nan"),
    "",
    "text",
    [],
    {},
    [[]],
    [0, "a"],
    {"a": 1},
)


def file_bytes(trace: Trace) -> bytes:
    """The file of a trace."""
    file = io.BytesIO()
    write(trace, file)
    return file.getvalue()


def members(content: bytes) -> Members:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def array_bytes(values: Any) -> bytes:
    """A `.npy` file, as numpy writes it."""
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def with_manifest(parts: Members, change: Any) -> Members:
    """`parts` with a manifest that `change` has changed in place."""
    manifest = json.loads(parts[MANIFEST])
    change(manifest)
    return {**parts, MANIFEST: json.dumps(manifest).encode()}


def mutations(content: bytes, lot: random.Random, count: int) -> Iterator[bytes]:
    """Files that differ from a valid one at random: in its bytes, its length, its columns or its JSON."""
    parts = members(content)
    for number in range(count):
        how = number % 6
        if how == 0:
            yield _flipped(content, lot, lot.choice((1, 1, 3, 30)))
        elif how == 1:
            yield content[: lot.randrange(len(content))]
        elif how in (2, 3):
            name = lot.choice(sorted(parts))
            begin = _HEADER if how == 3 and name != MANIFEST else 0
            changed = parts[name][:begin] + _flipped(parts[name][begin:], lot, lot.choice((1, 1, 8)))
            yield zipped({**parts, name: changed}, zipfile.ZIP_STORED)
        else:
            swap = _swap if how == 4 else _swap_alike
            yield zipped(with_manifest(parts, lambda manifest, swap=swap: swap(manifest, lot)), zipfile.ZIP_STORED)


def _flipped(content: bytes, lot: random.Random, count: int) -> bytes:
    changed = bytearray(content)
    for _ in range(count if content else 0):
        changed[lot.randrange(len(changed))] ^= 1 << lot.randrange(8)
    return bytes(changed)


def _swap(manifest: Any, lot: random.Random) -> None:
    """Put another value, or nothing, in some place of the JSON."""
    places = list(_places(manifest))
    holder, key = lot.choice(places)
    if lot.random() < 0.2:
        del holder[key]
    elif lot.random() < 0.3:
        other, other_key = lot.choice(places)
        holder[key] = json.loads(json.dumps(other[other_key]))
    else:
        holder[key] = lot.choice(_STRANGE)


def _swap_alike(manifest: Any, lot: random.Random) -> None:
    """Put a value of the same type into some place of the JSON."""
    places = list(_places(manifest))
    holder, key = lot.choice(places)
    alike = [other[name] for other, name in places if type(other[name]) is type(holder[key])]
    holder[key] = json.loads(json.dumps(lot.choice(alike)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
