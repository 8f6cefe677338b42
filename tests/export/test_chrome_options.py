"""`export_chrome_trace` with torch's options, and for the readers of Kineto's own files."""

import json
from pathlib import Path

import pytest
from traces import event, make_trace

from mtprof_nb.errors import MtprofWarning
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Results

OP = event("aten::mm", 5, 10)
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


def test_a_default_stream_on_which_nothing_is_put_is_warned_about_and_moves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    recorded = Finished(make_trace([OP, KERNEL]))
    recorded.export_chrome_trace(path, default_stream=7)
    plain = path.read_bytes()
    with pytest.warns(MtprofWarning, match="default_stream=5 changes nothing: only graph_lanes='all' moves") as caught:
        recorded.export_chrome_trace(path, default_stream=5)
    assert (len(caught), caught[0].filename, path.read_bytes()) == (1, __file__, plain)


def test_the_choice_of_a_writer_loses_no_metadata_of_either(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    trace = make_trace([OP], metadata={"added": '"later"'}, trace_id="A1", host="here")
    Finished(trace).export_chrome_trace(path, use_python_export=True)
    written = json.loads(path.read_text())
    # Torch's writer in C++ leaves out what was added after the end, the one in Python the trace's number and the host.
    assert (written["added"], written["trace_id"], written["host_name"]) == ("later", "A1", "here")


def test_the_file_ends_as_kinetos_does(tmp_path: Path) -> None:
    still_open = event("f.py(1): f", 20, 95, kind="python")
    Finished(make_trace([OP, still_open], began_ns=5, ended_ns=90)).export_chrome_trace(tmp_path / "trace.json")
    span, order, start, end = json.loads((tmp_path / "trace.json").read_text())["traceEvents"][-4:]

    assert (span["name"], order["name"], order["pid"]) == ("PyTorch Profiler (0)", "process_sort_index", "Spans")
    assert (start["name"], end["name"]) == ("Iteration Start: PyTorch Profiler", "Record Window End")
    assert start["ts"] == span["ts"] == 0.005
    assert (span["dur"], end["ts"]) == (0.085, 1.095), "nothing ends after the end"


def test_an_overload_that_kineto_was_asked_for_is_part_of_the_name_as_kineto_writes_it(tmp_path: Path) -> None:
    rows = [event("aten::add", 0, 10, overload="Tensor"), event("aten::add", 20, 30), event("aten::mm", 40, 50)]
    for hook, expected in (("kineto", "aten::add.Tensor"), ("native", "aten::add")):
        Finished(make_trace(rows, hooks=(hook,))).export_chrome_trace(tmp_path / "trace.json")
        written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        assert [one["name"] for one in written if one.get("cat") == "cpu_op"] == [expected, "aten::add", "aten::mm"]
