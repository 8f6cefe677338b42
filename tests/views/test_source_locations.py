"""Where a line of source stands, for a reader."""

import pytest
from traces import event, make_trace

from mtprof_nb.model.source_files import file_label, is_user_file, library_of, source_location
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.static_page import bundle
from mtprof_nb.views.tabs.lines.lines_tab import LinesTab
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/home/me/envs/ml/lib/python3.11/site-packages/torch/nn/functional.py", "torch/nn/functional.py:12"),
        ("C:\\ml\\Lib\\site-packages\\torch\\nn\\functional.py", "torch\\nn\\functional.py:12"),
        ("/usr/lib/python3.11/contextlib.py", "contextlib.py:12"),
        ("/home/me/project/train.py", "/home/me/project/train.py:12"),
        ("<string>", "<string>:12"),
    ],
)
def test_a_library_is_named_from_its_package_on_and_any_other_file_by_its_whole_path(file: str, shown: str) -> None:
    assert source_location(empty_trace(), file, 12) == shown


def test_a_cell_of_the_notebook_is_named_by_its_number() -> None:
    trace = empty_trace(cells={"cell compiled under some name": "Cell [3]"})

    assert source_location(trace, "cell compiled under some name", 4) == "Cell [3]:4"
    assert file_label(trace, "cell compiled under some name") == "Cell [3]"
    assert file_label(trace, "somewhere/model.py") == "model.py"


@pytest.mark.parametrize(
    ("file", "is_users"),
    [
        ("/home/colleague/train.py", True),
        ("/opt/conda/lib/python3.10/threading.py", False),
        ("/opt/conda/lib/python3.10/site-packages/torch/nn/functional.py", False),
        ("C:\\ml\\Lib\\site-packages\\torch\\nn\\functional.py", False),
    ],
)
def test_libraries_of_another_machine_are_nobody_s_own_files(file: str, is_users: bool) -> None:
    assert is_user_file(file) == is_users


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/home/colleague/train.py", ""),
        ("<ipython-input-3-abc>", ""),
        ("/opt/conda/lib/python3.10/site-packages/torch/nn/functional.py", "torch"),
        ("/usr/lib/python3/dist-packages/pandas/core/frame.py", "pandas"),
        ("C:\\ml\\Lib\\site-packages\\lightning\\fit.py", "lightning"),
        ("/opt/conda/lib/python3.10/site-packages/typing_extensions.py", "typing_extensions"),
        ("/opt/conda/lib/python3.10/threading.py", "Python"),
        ("<frozen importlib._bootstrap>", "Python"),
        ("torch/fx/graph_module.py", "torch"),
        ("/var/cache/torchinductor_me/ab/cabxyz.py", "torch.compile"),
    ],
)
def test_the_library_of_a_file_is_its_package_or_python_itself(file: str, library: str) -> None:
    assert library_of(file) == library


def test_every_writer_shows_a_line_of_source_as_it_was_written() -> None:
    source = "b = (a @ a) / ratio / 2"
    trace = make_trace([event("aten::mm", 0, 9_000_000, line=("/home/me/f.py", 1))], sources={"/home/me/f.py": source})
    scene = Scene(trace)

    assert [line["text"] for line in SummaryTab(scene).first()["lines"]] == [source]
    assert LinesTab(scene).first()["files"][0]["lines"][0]["text"] == source
    for written in bundle(scene).values():
        assert source in written
        assert "f.py:1" in written
