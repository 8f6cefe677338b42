"""HolisticTraceAnalysis joins launches and kernels of our Chrome traces one to one."""

import logging
from pathlib import Path

import pytest
from rank_traces import MS, job
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.export import chrome_trace


@pytest.mark.filterwarnings("ignore")
def test_each_of_two_kernels_of_one_op_is_joined_with_its_own_launch(tmp_path: Path) -> None:
    pytest.importorskip("hta")
    from hta.trace_analysis import TraceAnalysis

    logging.getLogger("hta").setLevel(logging.ERROR)
    rows = [
        event("aten::mm", 10_000, 90_000),
        event("first launch", 20_000, 30_000, kind="runtime", launcher=0),
        event("second launch", 40_000, 50_000, kind="runtime", launcher=0),
        event("first kernel", 60_000, 70_000, kind="kernel", device="CUDA", thread=7, launcher=0, launch=1),
        event("second kernel", 75_000, 85_000, kind="kernel", device="CUDA", thread=7, launcher=0, launch=2),
    ]
    path = tmp_path / "rank0.json"
    chrome_trace.write(make_trace(rows, pid=77, metadata={"distributedInfo": '{"rank": 0}'}), path)

    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(tmp_path))
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()
    name = {index: symbols[number] for index, number in zip(frame["index"], frame["name"], strict=True)}
    joined = frame[frame["index_correlation"] > 0]

    assert {
        name[one]: name[other] for one, other in zip(joined["index"], joined["index_correlation"], strict=True)
    } == {
        "first launch": "first kernel",
        "second launch": "second kernel",
        "first kernel": "first launch",
        "second kernel": "second launch",
    }
    assert frame.loc[frame["correlation"] > 0, "correlation"].value_counts().tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore")
def test_a_trace_of_several_ranks_is_read_with_a_process_for_each(tmp_path: Path) -> None:
    pytest.importorskip("hta")
    from hta.trace_analysis import TraceAnalysis

    logging.getLogger("hta").setLevel(logging.ERROR)
    trace, path = job(ranks=3, slow=1), tmp_path / "job.json"
    chrome_trace.write(trace, path)

    frame = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(tmp_path)).t.get_trace(0)
    assert frame.groupby("pid").size().to_dict() == {100: 20, 101: 30, 102: 20}


def test_a_trace_of_several_ranks_comes_back_with_its_ranks_and_its_straggler(tmp_path: Path) -> None:
    chrome_trace.write(job(ranks=3, slow=1), tmp_path / "job.json.gz")
    ranks = mtp.load(tmp_path / "job.json.gz").ranks()
    assert [(row.rank, row.came_last, row.waiting_ns) for row in ranks] == [
        (0, 0, 30 * MS),
        (1, 10, 0),
        (2, 0, 30 * MS),
    ]
    assert ranks.straggler is not None
    assert ranks.straggler.slower is not None
    assert ranks.straggler.slower.where == "aten::sort"
