"""torch's options of `export_chrome_trace` for kernels of CUDA graphs."""

from pathlib import Path

import pytest
from traces import event, make_trace

from mtprof_nb.results import Results
from mtprof_nb.trace import Trace

OP = event("aten::mm", 0, 10)
KERNEL = event("gemm", 20, 30, kind="kernel", device="CUDA", launcher=0)


class Finished(Results):
    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def trace(self) -> Trace:
        return self._trace


def test_options_that_torch_refuses_are_refused(tmp_path: Path) -> None:
    recorded = Finished(make_trace([OP, KERNEL]))
    with pytest.raises(ValueError, match="graph_lanes must be 'all' or 'none', got 'some'"):
        recorded.export_chrome_trace(tmp_path / "trace.json", graph_lanes="some")
    with pytest.raises(ValueError, match="graph_lanes='all' needs cuda_graph_annotations"):
        recorded.export_chrome_trace(tmp_path / "trace.json", graph_lanes="all")
    assert not list(tmp_path.iterdir())


def test_annotations_are_refused_where_there_are_kernels_that_torch_would_annotate(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nodes of CUDA graphs are not recorded here"):
        Finished(make_trace([OP, KERNEL])).export_chrome_trace(
            tmp_path / "trace.json", False, {3: {"name": "a"}}, "all"
        )
    assert not list(tmp_path.iterdir())


def test_annotations_change_nothing_where_no_kernel_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    Finished(make_trace([OP])).export_chrome_trace(path)
    plain = path.read_bytes()
    Finished(make_trace([OP])).export_chrome_trace(path, True, {3: {"name": "a"}}, "all", 5)
    assert path.read_bytes() == plain
