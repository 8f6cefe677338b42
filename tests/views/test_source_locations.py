"""Where a line of source stands, for a reader."""

import pytest

from mtprof_nb.model.source_files import source_location


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
    assert source_location(file, 12) == shown


def test_a_cell_of_the_notebook_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtprof_nb.model.source_files.file_label", lambda file: "Cell [3]")

    assert source_location("cell compiled under some name", 4) == "Cell [3]:4"
