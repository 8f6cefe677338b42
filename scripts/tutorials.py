"""Execute the tutorials and keep their outputs, which `make notebooks` compares with what a later run gives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
LARGEST_BYTES = 500_000


def executed(notebook: Path) -> Any:
    """The notebook, run from top to bottom; an error in a cell is raised."""
    content = nbformat.read(notebook, as_version=4)
    # The log of the kernel would stand between our own lines.
    quiet = ["--log-level=ERROR"]
    run = ExecutePreprocessor(kernel_name="python3", timeout=300, store_widget_state=False, extra_arguments=quiet)
    run.preprocess(content, {"metadata": {"path": str(notebook.parent)}})
    return content


def tidied(content: Any) -> Any:
    """Without what differs from run to run and shows nothing: times of execution, widgets whose state is not kept."""
    content.metadata = {key: content.metadata[key] for key in ("kernelspec", "language_info")}
    content.metadata["language_info"] = {"name": "python"}
    for cell in content.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
    return content


def main(*names: str) -> None:
    """Execute the notebooks of these names, or all."""
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and notebook.stem not in names:
            continue
        text = nbformat.writes(tidied(executed(notebook)))
        if len(text) > LARGEST_BYTES:
            sys.exit(f"{notebook.name} would have {len(text):,} bytes: show fewer panels, or fewer rows in them")
        notebook.write_text(text + "\n", encoding="utf-8")
        print(f"{notebook.name}: {len(text):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
