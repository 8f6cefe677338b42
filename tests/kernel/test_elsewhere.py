"""Where there is no notebook page: a terminal, `jupyter execute`, nbconvert."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import WIDGET, Kernel
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter

CELLS = (
    "%load_ext mtprof_nb\nimport torch, time",
    "%%mtprofile\nx = torch.ones(2, 2)\ntime.sleep(1.2)\nx.mm(x).sum().item()",
    "import mtprof_nb\nmtprof_nb.last().show()",
    "mtprof_nb.last().operators()",
)


@pytest.fixture(scope="module")
def executed() -> nbformat.NotebookNode:
    """A notebook as `jupyter execute` and `nbconvert --execute` leave it: both are this client."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    return NotebookClient(notebook, timeout=300, store_widget_state=False).execute()


def test_a_notebook_that_is_executed_has_the_table_and_the_page_and_no_progress_line(
    executed: nbformat.NotebookNode,
) -> None:
    value, panel = executed.cells[1].outputs

    assert value.data["text/plain"] == "8.0"
    assert panel.output_type == "display_data"
    assert "aten::mm" in panel.data["text/plain"]
    assert "aten::mm" in panel.data["text/html"]
    assert executed.cells[0].outputs == []
    nbformat.validate(executed)


@pytest.mark.parametrize("cell", [1, 2, 3])
def test_a_notebook_that_is_executed_has_no_widget_which_nobody_could_show(
    executed: nbformat.NotebookNode, cell: int
) -> None:
    assert set(executed.cells[cell].outputs[-1].data) == {"text/plain", "text/html", "text/markdown"}


def test_an_exported_page_shows_the_profile_without_scripts_of_ours(executed: nbformat.NotebookNode) -> None:
    page, _ = HTMLExporter().from_notebook_node(executed)

    assert "aten::mm" in page


def test_a_page_of_markdown_has_the_table_and_little_else(executed: nbformat.NotebookNode) -> None:
    page, _ = MarkdownExporter().from_notebook_node(executed)

    assert "aten::mm" in page
    assert not re.search("<script|<style", page), "a renderer of Markdown would show their texts"
    assert len(page) < 12_000 * len(CELLS)


def test_a_page_of_markdown_that_prefers_markdown_has_tables_and_no_html(executed: nbformat.NotebookNode) -> None:
    exporter = MarkdownExporter()
    exporter.config.NbConvertBase.display_data_priority = ["text/markdown", "image/png", "text/plain"]
    page, _ = exporter.from_notebook_node(executed)

    assert "| `aten::mm` |" in page
    assert not re.search("<[a-z]", page)


#: Elements and attributes that GitHub keeps, of those that the page has; and it fetches images by http alone.
GITHUB = {"b", "br", "code", "div", "img", "p", "pre", "span", "table", "tbody", "td", "th", "thead", "tr"}


def test_what_github_leaves_of_the_page_has_the_tables_and_no_broken_image(executed: nbformat.NotebookNode) -> None:
    bleach = pytest.importorskip("bleach")
    (html,) = [output.data["text/html"] for output in executed.cells[1].outputs if "text/html" in output.data]
    allowed = {"*": ["colspan", "title", "width"], "img": ["src", "alt"]}
    left = bleach.clean(html, tags=GITHUB, attributes=allowed, protocols={"http", "https"}, strip=True)

    assert re.search(r"<td[^>]*>.*aten::mm", left)
    assert re.search("█{4}", left), "bars are characters"
    assert left.count("<img") == left.count('<img alt="" title=') > 0
    assert "data:" not in left


def test_what_a_sanitizer_leaves_of_the_page_still_tells_and_draws(executed: nbformat.NotebookNode) -> None:
    page, _ = HTMLExporter(sanitize_html=True).from_notebook_node(executed)

    assert "aten::mm" in page
    assert "■" in page
    assert re.search("█{4}", page), "bars are characters"


def test_a_plain_terminal_gets_an_aligned_table(tmp_path: Path) -> None:
    typed = "\n".join(
        [
            "%load_ext mtprof_nb",
            "import torch",
            "%%mtprofile -l 3",
            "x = torch.ones(2, 2)",
            "x.mm(x).sum().item()",
            "",
            "",
            "%mtprofile -q x.mm(x).sum().item() + 1",
            "%%mtprofile",
            "1 / 0",
            "",
            "",
            "exit",
            "",
        ]
    )
    shell = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor", "--no-confirm-exit"]
    environment = os.environ | {"IPYTHONDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(shell, input=typed, capture_output=True, text=True, env=environment, timeout=300, check=True)

    assert "Out[3]: 8.0" in ran.stdout
    assert "Out[4]: 9.0" in ran.stdout
    lines = ran.stdout.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("Name "))
    assert len({len(line) for line in lines[header : header + 5]}) == 1
    assert "showing 3 of" in ran.stdout
    assert "failed with ZeroDivisionError" in ran.stdout
    assert "recording," not in ran.stdout
    assert "<" not in "".join(lines[header : header + 6])


def test_a_notebook_that_was_saved_with_its_widget_is_exported_as_the_page(kernel: Kernel) -> None:
    """Without the state of the widget, which JupyterLab does not save by default."""
    ran = kernel.run("%%mtprofile\ny = torch.ones(2, 2).mm(torch.ones(2, 2))", allow_stdin=True)
    outputs = [
        nbformat.v4.new_output("display_data", content["data"], metadata=content["metadata"])
        for content in ran.of("display_data")
    ]
    saved = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    nbformat.validate(saved)
    page, _ = HTMLExporter().from_notebook_node(saved)

    assert page.count('title="Stacks"') == 1
    (widget,) = [content["data"][WIDGET] for content in ran.of("display_data") if WIDGET in content["data"]]
    assert widget["model_id"] not in page
