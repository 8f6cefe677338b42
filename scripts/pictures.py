"""Take the pictures of docs/ anew: the panel as a real JupyterLab shows it. Needs a chromium on PATH."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))
from laboratory import FLAGS, Page, laboratory  # noqa: E402

NOTEBOOKS, PICTURES = ROOT / "notebooks", ROOT / "docs"
LARGEST_BYTES = 200_000
SIZE = {"width": 1_000, "height": 1_400}
TABS = ("Operators", "Timeline", "Stacks", "Lines", "Memory")


def picture(locator: Any, name: str) -> None:
    """The part of the page that `locator` finds, as a file in docs/."""
    path = PICTURES / f"{name}.png"
    locator.screenshot(path=str(path), animations="disabled")
    if path.stat().st_size > LARGEST_BYTES:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes: show less of the page")
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def opened(browser: Any, lab: Any, notebook: str) -> Any:
    """The first cell of a tutorial with a panel, after all cells have run."""
    shutil.copy(NOTEBOOKS / notebook, lab.folder / notebook)
    page = Page(browser.new_page(viewport=SIZE), lab)
    page.open(notebook)
    page.command("notebook:run-all-cells")
    return page.tab.locator(".jp-CodeCell").filter(has=page.panel()).first


def shown(cell: Any, title: str) -> None:
    """Bring a tab of the cell's panel to the front, and wait until it is drawn."""
    cell.get_by_role("tab", name=title).click()
    # Another cell is made the active one, whose tools would be in the picture.
    cell.page.locator(".jp-MarkdownCell").last.click()
    cell.page.mouse.move(0, 0)
    cell.page.wait_for_timeout(2_000)


def main() -> None:
    """All pictures of the tutorials and the README."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, laboratory(Path(folder)) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        cell = opened(browser, lab, "02_reading_the_panel.ipynb")
        for title in TABS:
            shown(cell, title)
            picture(cell.locator(".mtprof"), f"panel-{title.lower()}")
        cell = opened(browser, lab, "03_where_the_backward_goes.ipynb")
        shown(cell, "Lines")
        picture(cell, "panel")
        opened(browser, lab, "09_did_it_help.ipynb")
        comparison = browser.contexts[-1].pages[-1].locator(".mtprof", has_text="all at once against row by row").last
        comparison.wait_for(timeout=120_000)
        comparison.page.wait_for_timeout(2_000)
        picture(comparison, "panel-comparison")
        browser.close()


if __name__ == "__main__":
    main()
