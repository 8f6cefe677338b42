"""From Python 3.12 on, functions without marks have lines too: those of earlier cells and of the user's modules."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from marked_cells import Shell, new_shell

from mtprof_nb.capture.marks.line_monitoring import LineMonitor
from mtprof_nb.capture.marks.mark_buffers import MarkBuffers
from mtprof_nb.capture.marks.mark_transform import Places

python: Any = getattr(sys, "monitoring", None)
needs_monitoring = pytest.mark.skipif(python is None, reason="Python tells of lines from 3.12 on")


@pytest.fixture
def shell() -> Iterator[Shell]:
    with new_shell() as made:
        made.follow_functions = True
        yield made


def test_an_older_python_has_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtprof_nb.capture.marks.line_monitoring._python", None)
    monitor = LineMonitor(Places(), MarkBuffers(print), lambda file: 0)

    assert monitor.start() is False
    monitor.stop()


@needs_monitoring
def test_a_function_of_an_earlier_cell_has_its_own_lines(shell: Shell) -> None:
    shell.ip.run_cell(
        "def inner(x):\n    op()\n    return x + op()\ndef outer(x):\n    y = inner(x) + op()\n    return y"
    )
    run = shell.run("x = op()\ny = outer(x) + op()\nz = op()")

    assert run.lines == run.true_lines == [2, 2, 3, 5, 3, 4]
    assert run.trace is not None
    stack = run.trace.line_stacks.stack(run.trace.line_stack[1])
    assert [(frame.line, frame.function) for frame in stack] == [(2, "inner"), (5, "outer"), (3, "<module>")]


@needs_monitoring
def test_generators_recursion_and_exceptions_are_followed(shell: Shell) -> None:
    shell.ip.run_cell(
        "def numbers(n):\n"
        "    for i in range(n):\n"
        "        op()\n"
        "        yield i + op()\n"
        "        op()\n"
        "def count(n):\n"
        "    op()\n"
        "    return count(n - 1) + op() if n else op()\n"
        "def fail():\n"
        "    op()\n"
        "    raise KeyError\n"
        "async def wait():\n"
        "    import asyncio\n"
        "    await asyncio.sleep(0)\n"
        "    return op()\n"
    )
    run = shell.run(
        "for n in numbers(3):\n"
        "    op()\n"
        "x = next(numbers(1)) + op()\n"
        "count(3) + op()\n"
        "try:\n"
        "    fail()\n"
        "except KeyError:\n"
        "    op()\n"
        "y = await wait() + op()\n"
    )

    assert run.lines == run.true_lines


@needs_monitoring
def test_a_module_of_the_users_is_followed_and_an_installed_one_is_not(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    for folder, name in ((tmp_path, "mine"), (installed, "theirs")):
        (folder / f"{name}_monitored.py").write_text("def f(op):\n    x = op()\n    return op()\n")
        monkeypatch.syspath_prepend(folder)
    run = shell.run("import mine_monitored, theirs_monitored\nmine_monitored.f(op)\ntheirs_monitored.f(op)")

    assert run.lines == [2, 3, 4, 4]
    assert run.places[0].file == str(tmp_path / "mine_monitored.py")
    assert run.places[0].file not in run.trace.sources


@needs_monitoring
def test_the_text_of_an_earlier_cell_is_kept(shell: Shell) -> None:
    shell.ip.run_cell("def earlier():\n    return op()")
    run = shell.run("earlier()")

    assert run.trace.sources[run.places[0].file] == "def earlier():\n    return op()"


@needs_monitoring
def test_nobody_listens_when_the_recording_has_ended(shell: Shell) -> None:
    shell.ip.run_cell("def earlier():\n    return op()")
    before = [python.get_tool(tool) for tool in range(6)]
    first = shell.run("earlier()")
    between = [python.get_tool(tool) for tool in range(6)]
    second = shell.run("earlier()")

    assert before == between
    assert first.lines == second.lines == [2]


@needs_monitoring
def test_where_others_took_every_place_the_cell_alone_has_lines(shell: Shell) -> None:
    shell.ip.run_cell("def earlier():\n    return op()")
    free = [tool for tool in (3, 4) if python.get_tool(tool) is None]
    for tool in free:
        python.use_tool_id(tool, "another")
    try:
        run = shell.run("x = 1\nearlier()")
    finally:
        for tool in free:
            python.free_tool_id(tool)

    assert run.lines == [3]


@needs_monitoring
def test_functions_that_somebody_compiles_are_not_followed(shell: Shell) -> None:
    run = shell.run("def f():\n    return op()\nf()\nif False:\n    f.compile()")

    assert run.lines == [4]


@needs_monitoring
def test_threads_are_followed_each_on_its_own(shell: Shell) -> None:
    shell.ip.run_cell("def work():\n    for i in range(50):\n        op()\n        op()")
    run = shell.run(
        "import threading\n"
        "threads = [threading.Thread(target=work) for i in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "work()\n"
        "for thread in threads: thread.join()\n"
    )

    by_time = sorted(run.ops, key=lambda op: op.time_ns)
    assert run.lines == [op.line for op in by_time]
