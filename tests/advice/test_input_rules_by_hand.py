"""Findings about a DataLoader on hand-made traces: what workers cost, and what recording its ops took."""

import json
from typing import Any

import pytest
from rows_by_hand import LINE, MS, only
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.model.trace import Trace
from mtprof_nb.model.tracks import THREADS

ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _loading(batch_us: int, cores: int = 0, ops: int = 0, name: str = ALONE, **scalars: Any) -> Trace:
    """100 calls of next of so many microseconds, each with so many ops, and 10 ms of other work."""
    rows: list[Row] = []
    for at in range(100):
        start, length = at * batch_us * 1_000, batch_us * 1_000
        rows += [event(name, start, start + length, kind="scope", line=("cell.py", 1))]
        rows += [event("aten::select", start + one, start + one + 1, line=LINE) for one in range(ops)]
    end = 100 * batch_us * 1_000
    counts = {"threads": 1, "processors": cores, "cores": cores, "load": 0.0, "set_by": ""}
    metadata = {THREADS: json.dumps(counts)} if cores else {}
    return make_trace([*rows, event("aten::sort", end, end + 10 * MS)], metadata=metadata, **scalars)


@pytest.mark.parametrize("batch_us", [100, 399])
@pytest.mark.parametrize("cores", [0, 1, 2, 64])
def test_batches_that_take_less_than_workers_need_to_send_them_are_fetched_at_once(batch_us: int, cores: int) -> None:
    finding = only(_loading(batch_us, cores))

    assert (finding.rule, finding.certainty) == ("waits_for_input", "likely")
    assert "BatchSampler" in finding.fix
    assert "num_workers" not in finding.fix


@pytest.mark.parametrize(
    ("cores", "workers", "pay"),
    [(2, "num_workers=2", 4), (3, "num_workers=3", 5), (64, "num_workers=4", 6), (0, "num_workers=…", 6)],
)
def test_not_more_workers_are_advised_than_there_are_cores(cores: int, workers: str, pay: int) -> None:
    finding = only(_loading(10_000, cores))  # two workers take 20 ms to start, and save 5 ms a batch

    assert workers in finding.fix
    assert f"they pay from about {pay} batches on" in finding.fix
    assert finding.certainty == "likely"


def test_one_core_has_none_for_workers() -> None:
    assert "num_workers" not in only(_loading(10_000, 1)).fix
    assert "num_workers=2" in only(_loading(10_000, 2, name=WORKERS)).fix


def test_the_time_to_record_the_ops_of_a_loader_is_not_the_loaders() -> None:
    # 1,101 events took 22 ms, those in next 20: each 20 µs, of which 9 are sure.
    finding = only(_loading(300, ops=9, overhead_ns=1_001 * 20_000))

    assert finding.found_ns == 30 * MS - 1_000 * 20_000
    assert finding.at_most_ns == 30 * MS - 1_000 * 9_000
    assert finding.share == pytest.approx(21 / (40 - 1_001 * 0.009))
    assert finding.evidence == (
        "100 calls of the DataLoader's next, without worker processes, take 10.0 ms of 40.0 ms; "
        "recording them took about 20.0 ms more."
    )
    assert advise(_loading(300, ops=9, overhead_ns=1_001 * 30_000)) == ()
