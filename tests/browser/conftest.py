"""One JupyterLab and one browser for all browser tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import FLAGS, Laboratory, Page, laboratory
from shown_panels import AGAIN, COUNT_PANELS, EMPTY, FULL, SETUP, SHOWS, Shown

#: What a page is to show may take long on a busy machine; playwright's own patience ends after five seconds.
PATIENCE_MS = 60_000
WIDE = {"width": 1_250, "height": 950}


@pytest.fixture(scope="session")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """The server; without a browser none is started."""
    with laboratory(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        started.new_page().close()
        yield started
        started.close()


@pytest.fixture(scope="session")
def new_page(lab: Laboratory, browser: Any) -> Callable[[str], Page]:
    """Opens a notebook in a page of its own."""

    def opened(name: str) -> Page:
        page = Page(browser.new_page(viewport=WIDE), lab)
        page.open(name)
        return page

    return opened


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, lab: Laboratory, new_page: Callable[[str], Page]) -> Iterator[Shown]:
    """The panels, in a notebook with the name of the test file."""
    page = new_page(lab.write(f"{request.module.__name__}.ipynb", [SETUP, *SHOWS, COUNT_PANELS]))
    shown = Shown(page)
    page.run(0)
    for number in range(len(SHOWS)):
        before = page.received
        page.run(number + 1)
        shown.panel(number)
        if number in (FULL, AGAIN):
            shown.timeline(number)
        shown.nbytes.append(page.received - before)
        if number != EMPTY:
            shown.open("Operators", number)
    yield shown
    page.tab.close()


@pytest.fixture
def no_errors_on_the_console(run: Shown) -> Iterator[None]:
    """A test that leaves an error on the console of the page has failed."""
    yield
    problems, run.page.problems[:] = list(run.page.problems), []
    assert problems == []


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/browser --screenshots FOLDER` leaves a picture of every tab to look at."""
    parser.addoption("--screenshots", type=Path, help="a folder for pictures of every tab")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nobody looks at pictures that were not asked for, so they are no test then."""
    if config.getoption("--screenshots", default=None) is None:
        items[:] = [item for item in items if "screenshots" not in getattr(item, "fixturenames", ())]


@pytest.fixture
def screenshots(request: pytest.FixtureRequest) -> Path:
    """The folder for pictures."""
    folder: Path = request.config.getoption("--screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
