"""One figure: what was measured beside what, its spread, and the bound that it is held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Any, NamedTuple


class LeftOutError(Exception):
    """A group cannot be measured here. The message says why."""


class Spread(NamedTuple):
    """Median and quartiles of some samples."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """The spread of at least one sample."""
        if len(samples) == 1:
            return cls(samples[0], samples[0], samples[0])
        return cls(*quantiles(samples, n=4, method="inclusive"))


@dataclass(frozen=True)
class Bound:
    """The limit that a median is held to: at most that much, or at least."""

    limit: float
    is_least: bool = False

    def holds(self, value: float) -> bool:
        """Whether `value` is within the bound."""
        return value >= self.limit if self.is_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {self.limit:g}"


def at_most(limit: float) -> Bound:
    """A value may not be larger."""
    return Bound(limit)


def at_least(limit: float) -> Bound:
    """A value may not be smaller."""
    return Bound(limit, is_least=True)


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    group: str
    what: str
    #: What it is measured beside.
    beside: str
    value: Spread
    rounds: int
    #: × for a ratio; else what the value counts.
    unit: str = "×"
    bound: Bound | None = None
    #: Medians behind the ratio, for a reader who asks; no claim is made of them.
    behind: str = ""

    @property
    def verdict(self) -> str:
        """Whether the bound holds; with a ~ where the bound lies within the quartiles; "" without a bound."""
        if self.bound is None:
            return ""
        word = "yes" if self.bound.holds(self.value.median) else "no"
        return f"{word} ~" if self.value.low <= self.bound.limit <= self.value.high else word

    def as_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the same figure."""
        return {**asdict(self), "value": self.value._asdict(), "verdict": self.verdict}

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Figure:
        """The figure that `as_json` wrote."""
        facts = {key: value for key, value in read.items() if key != "verdict"}
        facts["value"] = Spread(**facts["value"])
        facts["bound"] = Bound(**facts["bound"]) if facts["bound"] else None
        return cls(**facts)
