"""Where a line of source stands, for a reader."""

import pytest

from mtprof_nb.model.source_files import file_label, is_user_file, library_of, source_location
from mtprof_nb.model.trace import empty_trace


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
