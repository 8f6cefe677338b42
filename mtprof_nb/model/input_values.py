"""Values of an op's inputs as JSON text: texts differ where values are equal, as 1, 1.0 and True."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def plain(inputs: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The values alone: an input that is an object of another kind becomes None, such a keyword is left out."""
    return (
        [value if _is_plain(value) else None for value in inputs],
        {key: value for key, value in keywords.items() if _is_plain(value)},
    )


def to_text(inputs: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """Plain values as text."""
    return json.dumps([inputs, list(keywords.items())], default=_of_complex, separators=(",", ":"))


def from_text(text: str) -> tuple[list[Any], dict[str, Any]]:
    """The values that `to_text` was given: of positional inputs, and by keyword."""
    inputs, pairs = json.loads(text, object_hook=lambda parts: complex(**parts))
    return inputs, dict(pairs)


def check_values(text: str) -> None:
    """Raise an error unless `from_text` can read `text` as values of inputs."""
    inputs, keywords = from_text(text)
    if not isinstance(inputs, list) or not all(isinstance(key, str) for key in keywords):
        msg = "it does not list the values of inputs"
        raise TypeError(msg)


def check_metadata_of_event(text: str) -> None:
    """Raise an error unless `text` is a JSON object of texts."""
    read = json.loads(text)
    if not isinstance(read, dict) or not all(isinstance(value, str) for value in read.values()):
        msg = "it is no object of texts"
        raise TypeError(msg)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, complex, str)


def _of_complex(value: complex) -> dict[str, float]:
    return {"real": value.real, "imag": value.imag}
