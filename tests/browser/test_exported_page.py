"""A notebook that a program has executed, as a page: the profile stands on it, with no kernel and no network."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import expect

CELLS = ("%load_ext mtprof_nb\nimport torch", "%%mtprofile\nx = torch.ones(2, 2)\ny = x.mm(x)")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """The page that `jupyter nbconvert --execute --to html` writes."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    convert = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", str(tmp_path / "small.ipynb")]
    subprocess.run(convert, check=True, capture_output=True, timeout=120)
    return tmp_path / "small.html"


def test_an_exported_page_shows_the_profile_without_a_network(browser: Any, exported: Path) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(exported.as_uri(), wait_until="domcontentloaded")

    expect(page.get_by_role("cell", name="aten::mm").first).to_be_visible()
    expect(page.get_by_title("Timeline")).to_be_visible()
    context.close()
