"""A real JupyterLab in a real browser, for tests and for looking at screenshots."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
]
SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # Every cell is drawn, also those far below.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    # A saved notebook is to show its panels without a kernel.
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
}
TESTS = Path(__file__).parent.parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Laboratory:
    """A running JupyterLab server and the folder it serves."""

    url: str
    folder: Path

    def write(self, name: str, cells: list[str]) -> str:
        """A notebook of code cells; returns its name."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)
        return name

    def read(self, name: str) -> Any:
        """The notebook as it was saved."""
        return nbformat.read(self.folder / name, as_version=4)


@contextmanager
def laboratory(folder: Path) -> Iterator[Laboratory]:
    """A JupyterLab on the loopback, without a token, with nothing of the user's own settings."""
    served = folder / "notebooks"
    served.mkdir(parents=True)
    for name, settings in SETTINGS.items():
        path = folder / "settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
    port = _free_port()
    environment = {
        **os.environ,
        "HOME": str(folder),
        # The native recorder that `make` has built.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }
    options = [
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"),
        *("--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={served}"),
        *("--ServerApp.port_retries=0", "--expose-app-in-browser"),
    ]
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options], cwd=served, env=environment, stdout=log, stderr=log
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status", server, folder / "server.log")
        yield Laboratory(f"http://127.0.0.1:{port}", served)
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(15)
        log.close()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2)
            return
        except OSError:
            time.sleep(0.1)
    msg = f"JupyterLab did not start:\n{log.read_text()[-3000:]}"
    raise RuntimeError(msg)


@dataclass
class Page:
    """One notebook in the browser. `problems` are the errors that its console showed."""

    tab: Any
    lab: Laboratory
    problems: list[str] = field(default_factory=list)
    #: Bytes that came from the kernels so far.
    received: int = 0

    def __post_init__(self) -> None:
        self.tab.on("console", self._listen)
        self.tab.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.tab.on("websocket", lambda socket: socket.on("framereceived", self._count))

    def _listen(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"{message.text} ({message.location.get('url', '')})")

    def _count(self, payload: str | bytes) -> None:
        self.received += len(payload)

    def open(self, name: str) -> None:
        """Load a notebook afresh, and wait until its kernel is ready."""
        self.tab.goto(f"{self.lab.url}/lab/tree/{name}?reset", wait_until="domcontentloaded")
        self.tab.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        self._wait_until_idle()
        if self.tab.evaluate("!window.jupyterapp.shell.leftCollapsed"):
            self.command("application:toggle-left-area")

    def command(self, name: str, **arguments: Any) -> None:
        """Run a command of JupyterLab's, and wait for its end."""
        run = "([name, args]) => window.jupyterapp.commands.execute(name, args).then(() => null)"
        self.tab.evaluate(run, [name, arguments])

    def _wait_until_idle(self) -> None:
        kernel = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"
        self.tab.wait_for_function(f"{kernel}?.status === 'idle'", timeout=60_000)

    def run(self, number: int) -> str:
        """Run one cell to its end; returns the text it printed."""
        select = "number => (window.jupyterapp.shell.currentWidget.content.activeCellIndex = number)"
        self.tab.evaluate(select, number)
        self.command("notebook:run-cell")
        self._wait_until_idle()
        cell = self.tab.locator(".jp-Notebook .jp-CodeCell").nth(number)
        return "".join(cell.locator("[data-mime-type='application/vnd.jupyter.stdout'] pre").all_inner_texts())

    def panel(self, number: int = 0) -> Any:
        """The n-th panel of the page."""
        found = self.tab.locator(".mtprof").nth(number)
        found.wait_for(timeout=60_000)
        return found

    def theme(self, name: str) -> None:
        """Switch to `JupyterLab Light` or `JupyterLab Dark`."""
        self.command("apputils:change-theme", theme=name)
        self.tab.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)

    def settled_box(self, element: Any) -> dict[str, float]:
        """Where an element is, once neither the notebook scrolls nor the chart is redrawn any more."""
        box: dict[str, float] = {}
        while box != (now := element.bounding_box()):
            box = now
            self.tab.wait_for_timeout(250)
        return box

    def drag(self, plot: Any, begin: float, end: float) -> None:
        """Draw a zoom box from one share of a plot's width to another."""
        plot.scroll_into_view_if_needed()
        box = self.settled_box(plot)
        y = box["y"] + box["height"] / 2
        self.tab.mouse.move(box["x"] + box["width"] * begin, y)
        self.tab.mouse.down()
        self.tab.mouse.move(box["x"] + box["width"] * end, y + 2, steps=6)
        self.tab.mouse.up()
