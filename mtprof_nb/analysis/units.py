"""Numbers as text: three significant digits and a unit."""

from __future__ import annotations

from collections.abc import Callable

MINUS = "\N{MINUS SIGN}"
_TIMES = ((1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_BYTES = ((1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB"))
_FLOPS = ((1, "FLOP"), (10**3, "kFLOP"), (10**6, "MFLOP"), (10**9, "GFLOP"), (10**12, "TFLOP"), (10**15, "PFLOP"))

_RATES = ((1, "B/s"), (10**3, "kB/s"), (10**6, "MB/s"), (10**9, "GB/s"), (10**12, "TB/s"))


def three_digits(value: float) -> str:
    """Three significant digits, without an exponent, and never past the third decimal: 0.012, 1.50, 123, 1,230."""
    if value == 0:
        return "0"
    if abs(value) < 0.9995:
        return f"{value:.3f}"
    if abs(value) >= 999.5:
        return f"{round(value, 2 - _magnitude(value)):,.0f}"
    return f"{value:.{2 - _magnitude(value)}f}"


def _magnitude(value: float) -> int:
    """The power of ten of the first digit, after rounding to three."""
    return int(f"{abs(value):.2e}".partition("e")[2])


def _scaled(value: float, units: tuple[tuple[int, str], ...], step: float) -> str:
    sign, size = (MINUS if value < 0 else ""), abs(value)
    # 999.6 would be written 1,000: the next unit needs three digits alone.
    scale, unit = next(((s, u) for s, u in units if size / s < step - 0.5), units[-1])
    whole = size / scale == int(size / scale) and scale == 1
    return f"{sign}{f'{size:,.0f}' if whole else three_digits(size / scale)} {unit}"


def duration(ns: float) -> str:
    """Nanoseconds as µs, ms or s."""
    return _scaled(ns, _TIMES, 1_000)


def nbytes(count: float) -> str:
    """Bytes as B, KiB, MiB, …"""
    return _scaled(count, _BYTES, 1_000)


def flops(count: float) -> str:
    """Floating point operations as kFLOP, MFLOP, …"""
    return _scaled(count, _FLOPS, 1_000)


def number(count: int) -> str:
    """A count with separators of thousands."""
    return f"{count:,}"


def share(part: float, whole: float) -> str:
    """`part` of `whole` in percent; an en dash if `whole` is 0."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return "0 %" if percent == 0 else "<0.1 %" if percent < 0.05 else f"{percent:.1f} %"


def plural(count: int, noun: str) -> str:
    """`3 ops`, `1 op`."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def sentence(text: str) -> str:
    """`text` with a capital letter and a full stop; "" stays."""
    return f"{text[0].upper()}{text[1:]}." if text else ""


def ratio(value: float) -> str:
    """A ratio with two decimals, below 0.1 with three, or three significant digits from 10 on."""
    if value >= 10:
        return three_digits(value)
    return f"{value:.2f}" if value >= 0.1 or not value else f"{value:.3f}" if value >= 0.001 else "<0.001"


def percent(value: int) -> str:
    """A share that is known in percent; an en dash for -1."""
    return f"{value} %" if value >= 0 else "–"


def rate(bytes_per_s: float) -> str:
    """Bytes a second as MB/s, GB/s, …; an en dash for none."""
    return _scaled(bytes_per_s, _RATES, 1_000) if bytes_per_s else "–"


def rank(number: int) -> str:
    """`rank 3`; an en dash for -1."""
    return f"rank {number}" if number >= 0 else "–"


#: The function that formats a column of each unit.
WRITERS: dict[str, Callable[[int], str]] = {
    "time": duration,
    "bytes": nbytes,
    "flops": flops,
    "count": number,
    "percent": percent,
    "rate": rate,
    "rank": rank,
}
