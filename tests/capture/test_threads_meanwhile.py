"""Counting the threads that start, beside others who replace the same method."""

import threading

import pytest

from mtprof_nb.capture.other_threads import ThreadsMeanwhile


def _run() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def test_threads_are_counted_between_install_and_remove() -> None:
    starts, original = ThreadsMeanwhile(), threading.Thread.start
    starts.install()
    _run()
    _run()
    starts.remove()
    _run()

    assert starts.count == 2
    assert threading.Thread.start is original
    starts.remove()
    assert threading.Thread.start is original


def test_what_somebody_else_put_there_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, seen = ThreadsMeanwhile(), []
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)  # to be put back at the end
    starts.install()
    counted = threading.Thread.start

    def theirs(thread: threading.Thread) -> None:
        seen.append(thread)
        counted(thread)

    monkeypatch.setattr(threading.Thread, "start", theirs)
    starts.remove()
    _run()

    assert threading.Thread.start is theirs
    assert len(seen) == 1
