"""Numbers as people read them."""

import pytest

from mtprof_nb.analysis import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 µs"),
        (1, "0.001 µs"),
        (999, "0.999 µs"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (1_234_567, "1.23 ms"),
        (59_000_000_000, "59.0 s"),
        (1_234_000_000_000, "1,230 s"),
        (-1_500, "−1.50 µs"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(ns: int, text: str) -> None:
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1_536, "1.50 KiB"), (3 << 20, "3.00 MiB"), (-(5 << 30), "−5.00 GiB")],
)
def test_bytes_are_counted_in_powers_of_two(count: int, text: str) -> None:
    assert units.nbytes(count) == text


def test_flops_counts_and_shares() -> None:
    assert units.flops(8_388_608) == "8.39 MFLOP"
    assert units.number(1_234_567) == "1,234,567"
    assert units.plural(1, "event") == "1 event"
    assert units.plural(1_200, "event") == "1,200 events"
    assert [units.share(part, 3_000) for part in (0, 1, 1_000, 3_000)] == ["0 %", "<0.1 %", "33.3 %", "100.0 %"]
    assert units.share(1, 0) == "–"
