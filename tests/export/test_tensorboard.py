"""The handler that writes windows for TensorBoard."""

import json
import os
import platform
import re
from pathlib import Path

import pytest
from traces import event, make_trace

from mtprof_nb.errors import ExportError
from mtprof_nb.export import chrome_trace
from mtprof_nb.export.tensorboard import tensorboard_trace_handler


class _Finished:
    writers: tuple[bool, ...] = ()

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        self.writers += (use_python_export,)
        chrome_trace.write(make_trace([event("aten::mm", 0, 1_000)]), path)


def test_each_window_is_a_file_of_its_own_under_torchs_name(tmp_path: Path) -> None:
    handler = tensorboard_trace_handler(str(tmp_path / "runs" / "first"))
    handler(_Finished())
    handler(_Finished())

    names = sorted(path.name for path in (tmp_path / "runs" / "first").iterdir())
    worker = re.escape(f"{platform.node()}_{os.getpid()}")
    assert len(names) == 2
    assert all(re.fullmatch(rf"{worker}\.\d{{19}}\.pt\.trace\.json", name) for name in names)
    assert json.loads((tmp_path / "runs" / "first" / names[0]).read_text())["traceEvents"][0]["name"] == "aten::mm"


def test_the_worker_can_be_named_and_the_file_compressed(tmp_path: Path) -> None:
    tensorboard_trace_handler(tmp_path, "rank0", use_gzip=True)(_Finished())

    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"rank0\.\d{19}\.pt\.trace\.json\.gz", path.name)
    assert path.read_bytes()[:2] == b"\x1f\x8b"


def test_the_choice_of_a_writer_is_told_to_the_profiler(tmp_path: Path) -> None:
    finished = _Finished()
    tensorboard_trace_handler(tmp_path)(finished)
    tensorboard_trace_handler(tmp_path, use_python_export=True)(finished)
    assert finished.writers == (False, True)


def test_a_folder_that_cannot_be_made_is_an_error_that_asks_for_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"cannot write '.*file/runs': a part of its path is a file, not a folder"):
        tensorboard_trace_handler(tmp_path / "file" / "runs")(_Finished())
    with pytest.raises(ExportError, match=r"cannot write '.*file': File exists: choose another path"):
        tensorboard_trace_handler(tmp_path / "file")(_Finished())
