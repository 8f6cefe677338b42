"""Marks change nothing of a cell, and say which of its lines every op belongs to."""

import builtins
import gc
import math
import textwrap
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest
from marked_cells import Run, Shell, new_shell
from marked_programs import FAILURES, PROGRAMS

from mtprof_nb.capture.marks import mark_buffers
from mtprof_nb.capture.marks.mark_transform import MARK


@pytest.fixture(scope="module")
def shells() -> Iterator[tuple[Shell, Shell]]:
    with new_shell() as plain, new_shell() as marked:
        yield plain, marked


@pytest.fixture
def shell(shells: tuple[Shell, Shell]) -> Shell:
    return shells[1]


def cell(text: str) -> str:
    return textwrap.dedent(text).removeprefix("\n")


def run_both(shells: tuple[Shell, Shell], text: str) -> tuple[Run, Run]:
    plain, marked = shells
    plain.ip.execution_count = marked.ip.execution_count
    return plain.run(cell(text), marked=False), marked.run(cell(text))


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_every_op_gets_the_line_that_called_it(shells: tuple[Shell, Shell], text: str) -> None:
    _, marked = run_both(shells, text)

    assert marked.result.success
    assert marked.note == ""
    assert marked.lines == marked.true_lines


@pytest.mark.parametrize("text", {**PROGRAMS, **FAILURES}.values(), ids=[*PROGRAMS, *FAILURES])
def test_a_marked_cell_does_and_prints_what_the_plain_one_does(shells: tuple[Shell, Shell], text: str) -> None:
    plain, marked = run_both(shells, text)

    assert without_times(marked.output) == without_times(plain.output)
    assert marked.names == plain.names
    assert repr(marked.result.result) == repr(plain.result.result)
    assert repr(marked.result.error_in_exec) == repr(plain.result.error_in_exec)
    assert [op.line for op in marked.ops] == [op.line for op in plain.ops] or "thread" in text


def without_times(output: str) -> str:
    return "\n".join(line for line in output.splitlines() if "time:" not in line and "times:" not in line)


def test_no_frame_and_no_error_of_the_marks_shows_where_the_stack_is_used_up(shell: Shell) -> None:
    text = """
        def f(n):
            return f(n + 1)
        try:
            f(0)
        except RecursionError as caught:
            error = caught"""
    shell.run(cell(text))
    error = shell.ip.user_ns["error"]

    assert isinstance(error, RecursionError)
    assert error.__context__ is None
    assert {code.co_name for code in codes_of(error)} == {"<module>", "f"}


def codes_of(error: BaseException) -> list[CodeType]:
    traceback, found = error.__traceback__, []
    while traceback is not None:
        found.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return found


def test_functions_that_a_cell_leaves_behind_have_the_code_they_would_have_had(shells: tuple[Shell, Shell]) -> None:
    text = """
        def f(x):
            def inner(y):
                return y + op()
            return inner
        twice = lambda x: x + op(), lambda x: x + op()
        class C:
            def method(self):
                return op()
        g = f(1)
        h = [lambda: op()]"""
    run_both(shells, text)

    names = ("f", "g", "twice", "C", "h")
    was, now = ([shell.ip.user_ns[name] for name in names] for shell in shells)
    assert [code_of(value) for value in now] == [code_of(value) for value in was]
    assert MARK not in builtins.__dict__


def code_of(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [code_of(part) for part in value]
    function = getattr(value, "method", value)
    return function.__code__.replace(co_filename="")


def test_a_generator_that_outlives_the_cell_runs_on(shell: Shell) -> None:
    shell.run("def g():\n    yield op()\n    yield op()\nrunning = g()\nnext(running)")

    assert MARK in builtins.__dict__
    assert list(shell.ip.user_ns["running"]) == [1]

    shell.run("op()")
    assert MARK not in builtins.__dict__


def test_a_thread_that_outlives_the_cell_runs_on(shell: Shell) -> None:
    text = """
        import threading
        go, ended = threading.Event(), []
        def work():
            go.wait()
            ended.append(op())
        thread = threading.Thread(target=work)
        thread.start()"""
    shell.run(cell(text))
    space = shell.ip.user_ns
    space["go"].set()
    space["thread"].join()

    assert space["ended"] == [1]
    shell.run("op()")
    assert MARK not in builtins.__dict__


def test_a_thread_without_marks_of_its_own_has_no_line(shell: Shell) -> None:
    run = shell.run("import threading\nt = threading.Thread(target=op)\nt.start(); t.join()\nop()")

    assert sorted(run.lines, key=str) == [5, None]


def test_the_lines_that_called_a_line_are_known(shell: Shell) -> None:
    text = """
        def f():
            return op()
        def g():
            return f()
        g()
        op()"""
    run = shell.run(cell(text))
    trace = run.trace

    assert trace is not None
    stacks = [[(frame.line, frame.function) for frame in trace.line_stacks.stack(node)] for node in trace.line_stack]
    assert stacks == [[(3, "f"), (5, "g"), (6, "<module>")], [(7, "<module>")]]


def test_a_function_defined_in_an_earlier_cell_belongs_to_the_line_that_calls_it(shell: Shell) -> None:
    shell.ip.run_cell("def earlier():\n    return op()")

    assert shell.run("x = 1\nearlier()").lines == [3]


@pytest.mark.parametrize(
    "line",
    [
        "from torch import compile as fast",
        "fast = jit",
        "from numba import njit",
        "thing.compile()",
        "import joblib",
    ],
)
def test_functions_are_not_marked_where_somebody_may_read_their_bytecode(shell: Shell, line: str) -> None:
    run = shell.run(f"def f():\n    return op()\nf()\nif False:\n    {line}")

    assert run.lines == [4]
    assert "no line marks inside functions" in run.note


def test_a_function_under_an_unknown_decorator_is_not_marked(shell: Shell) -> None:
    shell.ip.run_cell("def foreign(f):\n    f.names = f.__code__.co_names\n    return f")
    run = shell.run("@foreign\ndef f():\n    return op()\nf()\nf.names")

    assert run.lines == [5]
    assert run.result.result == ("op",)


def test_a_pattern_is_no_compiled_function(shell: Shell) -> None:
    run = shell.run("import re\ndef f():\n    return op()\nre.compile('a')\nf()")

    assert (run.lines, run.note) == ([4], "")


def test_a_cell_that_cannot_be_marked_runs_unmarked_and_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise SyntaxError("too many statically nested blocks")

    monkeypatch.setattr("mtprof_nb.capture.marks.marked_cell.mark_tree", fail)
    run = shell.run("x = op()")

    assert run.result.success
    assert len(run.ops) == 1
    assert run.lines == [None]
    assert run.note == "the cell runs without line marks (SyntaxError: too many statically nested blocks)"


def test_a_cell_that_marks_would_break_runs_without_them(shells: tuple[Shell, Shell]) -> None:
    blocks = "".join(f"{' ' * (level + 1)}for i{level} in [0]:\n" for level in range(20))
    plain, marked = run_both(shells, f"def f():\n{blocks}{' ' * 21}return op()\nf()")

    assert marked.result.success == plain.result.success
    assert len(marked.ops) == len(plain.ops)


def test_marking_ends_at_its_limit_and_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FIRST_PACKING": 8, "PACKING": 8, "MOST_MARKS": 32}.items():
        monkeypatch.setattr(mark_buffers, name, value)
    run = shell.run("for i in range(40):\n    op()\nop()")

    known = [line for line in run.lines if line is not None]
    assert 8 < len(known) < 32
    assert run.lines == known + [None] * (41 - len(known))
    assert known == run.true_lines[: len(known)]
    assert run.note == "more than 32 statements ran: later lines are not marked"


def test_a_mark_that_fails_ends_the_marking_and_not_the_users_statement(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mark_buffers, "FIRST_PACKING", 7)
    monkeypatch.setattr(mark_buffers, "PACKING", 7)
    # No function of the user's, whose errors are the user's own: a builtin that is called without its argument.
    monkeypatch.setattr(mark_buffers.MarkBuffers, "_show_last_marks", math.sqrt)
    run = shell.run(cell("for i in range(20):\n    op()\nop()"))

    assert run.result.success
    assert len(run.ops) == 21
    assert run.note == "marking was interrupted: later lines are not marked"


def test_only_the_cells_own_thread_measures_what_a_mark_costs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_buffers, "FIRST_PACKING", 7)
    monkeypatch.setattr(mark_buffers, "PACKING", 7)
    measured: list[int] = []
    measuring = threading.get_native_id
    monkeypatch.setattr(mark_buffers.MarkBuffers, "measure_costs", lambda _buffers: measured.append(measuring()))
    text = """
        import threading
        def work():
            for i in range(60):
                op()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        work()"""
    shell.run(cell(text))

    assert set(measured) == {threading.get_native_id()}


def test_marks_are_packed_without_losing_one(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_buffers, "FIRST_PACKING", 7)
    monkeypatch.setattr(mark_buffers, "PACKING", 7)
    text = """
        import threading
        def work():
            for i in range(300):
                op()
                op()
        threads = [threading.Thread(target=work) for i in range(3)]
        for thread in threads: thread.start()
        work()
        for thread in threads: thread.join()"""
    run = shell.run(cell(text))

    by_time = sorted(zip(run.ops, strict=True), key=lambda op: op[0].time_ns)
    assert run.lines == [op.line for (op,) in by_time]


def test_what_an_inner_magic_runs_has_its_own_lines(shell: Shell) -> None:
    run = shell.run("op()\nget_ipython().run_cell_magic('capture', 'out', 'x = 1\\nop()')\nop()")

    places = run.places
    assert [place.line for place in places] == [2, 2, 4]
    assert places[0].file == places[2].file != places[1].file
    assert run.trace.sources[places[1].file] == "x = 1\nop()"


def test_the_text_of_a_timed_cell_is_there_though_nobody_keeps_it(shell: Shell) -> None:
    run = shell.run("get_ipython().run_cell_magic('time', '', 'x = 1\\n\\nop()')")

    assert run.places[0].line == 3
    assert run.trace.sources[run.places[0].file] == "x = 1\n\nop()"


def test_a_line_magic_is_a_line_of_the_cell(shells: tuple[Shell, Shell]) -> None:
    plain, marked = run_both(shells, "%time op()\nvalue = %time op()\nop()")

    assert marked.lines == [2, 3, 4]
    assert without_times(marked.output) == without_times(plain.output)


def test_code_that_is_timed_again_and_again_is_not_marked(shell: Shell) -> None:
    run = shell.run("get_ipython().run_line_magic('timeit', '-n 2 -r 1 op()')")

    assert set(run.lines) == {2}


def test_the_source_is_the_cell_as_it_was_typed(shell: Shell) -> None:
    run = shell.run("x = 1\n%time op()")

    assert run.trace.sources[run.places[0].file] == "begin()\nx = 1\n%time op()"


def test_every_node_is_displayed_as_without_marks(shells: tuple[Shell, Shell]) -> None:
    for shell in shells:
        shell.ip.ast_node_interactivity = "all"
    try:
        plain, marked = run_both(shells, "op()\nfor i in range(2):\n    op()\nx = op()\nx")
    finally:
        for shell in shells:
            shell.ip.ast_node_interactivity = "last_expr"

    assert marked.output == plain.output
    assert marked.output.count(": 1") == 4


def test_a_mark_keeps_no_object_of_the_user_alive(shell: Shell) -> None:
    run = shell.run("class C: pass\ndef f(x):\n    op()\nimport weakref\nr = C()\nf(r)\nr = weakref.ref(r)\nr()")
    gc.collect()

    assert run.result.result is None
