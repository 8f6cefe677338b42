"""Bytes of copies and facts of collectives, read from the metadata that Kineto keeps for such events."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from mtprof_nb.model.trace import COLLECTIVE, KERNEL, Collective, Columns

#: Bytes of one element, by the names that PyTorch gives to types in Python and in C++.
ELEMENT_BYTES = {
    **dict.fromkeys(("bool", "byte", "char", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
    **dict.fromkeys(("short", "half", "bfloat16", "short int", "c10::Half", "c10::BFloat16"), 2),
    **dict.fromkeys(("int", "float"), 4),
    **dict.fromkeys(("long", "double", "complexfloat", "long int", "c10::complex<float>"), 8),
    **dict.fromkeys(("complexdouble", "c10::complex<double>"), 16),
}
#: Names of c10's numbers of device types, which files have; 6 is HIP, whose devices PyTorch calls CUDA.
DEVICE_TYPES = {0: "CPU", 1: "CUDA", 6: "CUDA", 9: "XLA", 12: "XPU", 13: "MPS", 14: "META", 19: "MTIA", 20: "NPU"}
#: Larger numbers are no sizes, even if a file has them.
_MOST = 2**58
#: Keys of the metadata that facts are read from.
_FACTS = frozenset(
    {"Collective name", "Process Group Name", "Group size", "dtype", "In msg nelems", "Out msg nelems", "bytes"}
)
_ANY_FACT = re.compile('"(Collective name|bytes)"')
_BYTES = re.compile(r'(?<!\\)"bytes": "(\d{1,15})"')
#: How the names of kernels begin in which processes exchange data.
KERNELS_OF_COLLECTIVES = ("nccl", "rccl", "hccl", "hcom", "oneccl")


def device_facts(fields: Columns) -> Columns:
    """Columns `moved_bytes`, `collective` and `kind`, in which collectives are marked, from extras and names."""
    metadata = [_metadata(text) for text in fields.get("extras", ())]
    facts = [collective_of(one) for one in metadata]
    number = {fact: place for place, fact in enumerate(dict.fromkeys(fact for fact in facts if fact is not None))}
    collectives = tuple(number)
    position = np.array([-1 if fact is None else number[fact] for fact in facts] + [-1], np.int32)
    moved = np.array([moved_bytes(one) for one in metadata] + [-1], np.int64)
    extra, kind = fields.get("extra"), fields["kind"]
    extra = np.full(len(kind), -1, np.int32) if extra is None else extra
    is_named = [name.lower().startswith(KERNELS_OF_COLLECTIVES) for name in fields["names"]]
    exchanges = (position[extra] >= 0) | np.array([*is_named, False], np.bool_)[fields["name"]]
    return {
        "kind": np.where(exchanges & (kind == KERNEL), np.int8(COLLECTIVE), kind),
        "moved_bytes": moved[extra] if (moved >= 0).any() else None,
        "collective": position[extra] if collectives else None,
        "collectives": collectives,
    }


def collective_of(metadata: Mapping[str, Any]) -> Collective | None:
    """The collective that an event's metadata describes; None where it describes none."""
    name = metadata.get("Collective name")
    if not isinstance(name, str):
        return None
    return Collective(
        name,
        group=str(metadata.get("Process Group Name", "")),
        group_size=_number(metadata.get("Group size")),
        dtype=str(metadata.get("dtype", "")),
        in_elements=_number(metadata.get("In msg nelems")),
        out_elements=_number(metadata.get("Out msg nelems")),
    )


def moved_bytes(metadata: Mapping[str, Any]) -> int:
    """Bytes that a copy or set wrote; of a collective, the larger of a process's input and output; -1 if unknown."""
    collective = collective_of(metadata)
    if collective is None:
        return _number(metadata.get("bytes"))
    elements = max(collective.in_elements, collective.out_elements)
    size = ELEMENT_BYTES.get(collective.dtype.lower())
    return -1 if size is None or elements < 0 else elements * size


def _metadata(text: str) -> dict[str, Any]:
    """The facts of an entry, a JSON object whose values are JSON texts themselves."""
    keys = set(_ANY_FACT.findall(text))
    # Most entries with a fact are of copies.
    if keys == {"bytes"} and (match := _BYTES.search(text)):
        return {"bytes": int(match[1])}
    return {key: _parsed(value) for key, value in json.loads(text).items() if key in _FACTS} if keys else {}


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _number(value: Any) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST
    return int(value) if is_number else -1
