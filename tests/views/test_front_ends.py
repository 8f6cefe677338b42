"""Values that any front end displays: mime bundles, marimo, and how a program that executes notebooks is told."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.recording import Recording
from mtprof_nb.views.frontend import is_marimo, is_unattended
from mtprof_nb.views.panel.saved_panel import panel_page, saved_panel
from mtprof_nb.views.panel.widget import Panel


@pytest.fixture
def recording() -> Recording:
    return Recording(make_trace([event("aten::mm", 0, 40_000)], label="mine"))


def shell(allow_stdin: bool | None) -> Any:
    return SimpleNamespace(get_parent=lambda: {"content": {"allow_stdin": allow_stdin}})


def test_a_recording_is_a_value_with_a_page_a_table_and_a_text(recording: Recording) -> None:
    bundle = recording._repr_mimebundle_()

    assert set(bundle) == {"text/html", "text/markdown", "text/plain"}
    assert bundle["text/plain"].startswith("mine\nwall 40.0 µs")
    assert bundle["text/markdown"] == recording.to_markdown()


def test_without_a_notebook_ipython_takes_the_bundle(recording: Recording) -> None:
    with pytest.raises(NotImplementedError):
        recording._ipython_display_()


def test_in_marimo_the_panel_is_what_a_recording_and_show_give(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (is_marimo(), recording.show()) == (False, None)
    assert capsys.readouterr().out.startswith("mine\n")
    monkeypatch.setitem(sys.modules, "marimo", SimpleNamespace(running_in_notebook=lambda: True))

    assert isinstance(recording._display_(), Panel)
    assert isinstance(recording.show(limit=3), Panel)
    assert capsys.readouterr().out == ""


def test_voila_executes_as_a_program_does_and_has_people_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    assert [is_unattended(shell(answer)) for answer in (True, False, None)] == [False, True, False]
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5.8")
    assert not is_unattended(shell(False))


def test_the_saved_panel_is_a_script_of_its_own_that_finds_its_page(recording: Recording) -> None:
    panel = recording._display_()
    page = panel_page(panel.page, "<b>static</b>")
    script = saved_panel(panel.page, panel.tabs, panel.strip, panel.first)

    assert page == f'<div data-mtprof-page="{panel.page}"><b>static</b></div>'
    assert f"'[data-mtprof-page=\"{panel.page}\"]'" in script
    assert script.startswith("((output) => {")
    assert len(script) < 80_000
