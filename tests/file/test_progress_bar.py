"""The bar of a load that takes long: in a terminal, in a notebook, and where nobody watches."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from files_to_load import chrome, save

import mtprof_nb as mtp
from mtprof_nb.views import progress_bar as progress_bars
from mtprof_nb.views.progress_bar import progress_bar


def test_the_bar_follows_a_chrome_trace(tmp_path, monkeypatch):
    chrome(tmp_path / "trace.json", "aten::mm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress_bars, "DELAY_S", 0)
    mtp.load(tmp_path / "trace.json")

    assert "\rloading trace.json: " in sys.stderr.getvalue()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that stands still unless the test moves it."""
    hands = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress_bars.time, "monotonic", lambda: hands.now)
    return hands


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_after_a_second_and_nothing_at_the_end(clock, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("loading run.json") as progress:
        for clock.now, share in ((0.9, 0.1), (1.0, 0.25), (1.1, 0.3), (1.3, 0.5)):
            progress(share)

    assert stream.getvalue() == "\rloading run.json: 25%\x1b[K\rloading run.json: 50%\x1b[K\r\x1b[K"


def test_a_quick_load_says_nothing(clock, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("loading run.json") as progress:
        progress(1.0)

    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nobody_is_told_where_nobody_watches(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)

    with progress_bar("loading") as progress:
        assert progress is None


class Shell:
    """A kernel's shell."""

    def __init__(self, allow_stdin: bool) -> None:
        self._allow_stdin = allow_stdin
        self.published: list[tuple[dict[str, str], bool]] = []
        self.display_pub = self

    def get_parent(self) -> dict[str, Any]:
        return {"content": {"allow_stdin": self._allow_stdin}}

    def publish(self, bundle: dict[str, str], _metadata: Any, *, transient: dict[str, str], update: bool) -> None:
        assert transient["display_id"]
        self.published.append((bundle, update))


def test_a_notebook_has_a_bar_that_disappears(clock, monkeypatch):
    shell = Shell(allow_stdin=True)
    monkeypatch.setattr(progress_bars, "running_shell", lambda: shell)
    with progress_bar("loading <b>") as progress:
        clock.now = 2.0
        progress(0.5)

    (shown, was_update), removed = shell.published
    assert (shown["text/plain"], was_update) == ("loading <b>: 50%", False)
    assert re.search(r"loading &lt;b&gt; <progress value='0.500' max='1'>", shown["text/html"])
    assert removed == ({}, True)


def test_a_notebook_that_a_program_executes_has_no_bar(monkeypatch):
    monkeypatch.setattr(progress_bars, "running_shell", lambda: Shell(allow_stdin=False))

    with progress_bar("loading") as progress:
        assert progress is None


def test_many_files_share_one_bar_by_their_sizes(tmp_path, monkeypatch):
    for pid in (1, 2):
        save(tmp_path / f"{pid}.mtp", pid=pid, rank=pid, label="x" * 5_000)
    told: list[float] = []

    class Bar:
        def __init__(self, title: str, _surface: Any) -> None:
            assert title == "loading 2 files"

        update = staticmethod(told.append)

        def remove(self) -> None:
            told.append(-1)

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress_bars, "_Bar", Bar)
    mtp.load(tmp_path)

    assert told == [pytest.approx(0.5, abs=0.01), 1.0, -1]
