"""Small functions that run all the time and run no op lose their marks while the cell runs; all others keep them."""

import itertools
import sys
import textwrap
from collections.abc import Iterator
from types import SimpleNamespace

import marked_cells
import pytest
from marked_cells import Run, Shell, new_shell

from mtprof_nb.capture.marks import mark_buffers
from mtprof_nb.capture.marks.hot_functions import HotFunctions
from mtprof_nb.capture.marks.mark_transform import MARK

#: Nobody's source lines, as those of a runtime are; an op takes as long as ten readings of the clock.
HELPERS = """
def op():
    for _ in range(10):
        clock()
    return 1

def tiny_op():
    for _ in range(3):
        clock()

def is_marked(function):
    return MARK in function.__code__.co_names
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    # A tenth of a microsecond passes between two readings.
    clock = itertools.count(1_000_000, 100).__next__
    time = SimpleNamespace(perf_counter_ns=clock, time_ns=clock)
    monkeypatch.setattr(mark_buffers, "time", time)
    monkeypatch.setattr(marked_cells, "time", time)
    helpers = {"clock": clock, "MARK": MARK}
    exec(HELPERS, helpers)
    with new_shell() as shell:
        names = {name: helpers[name] for name in ("op", "tiny_op", "is_marked")}
        shell.ip.user_ns.update(recorded_op=shell.ip.user_ns["op"], **names)
        yield shell


def run(shell: Shell, text: str) -> Run:
    finished = shell.run(textwrap.dedent(text).removeprefix("\n"))
    finished.result.raise_error()
    return finished


def unmarked_note(names: str) -> str:
    return (
        f"line marks were removed from {names}: they are called often and run hardly any op, "
        "so their time now counts for the line that calls them"
    )


def test_a_function_without_ops_loses_its_marks_and_its_ops_belong_to_the_line_that_calls_it(shell: Shell) -> None:
    finished = run(
        shell,
        """
        def small(x):
            if x < 0:
                recorded_op()
            return x
        small(-1)
        for i in range(1000):
            small(i)
        marked = is_marked(small)
        small(-1)""",
    )

    assert not shell.ip.user_ns["marked"]
    assert finished.true_lines == [4, 4]
    assert finished.lines == [4, 10]
    assert finished.note == unmarked_note("small")


@pytest.mark.parametrize(
    "body",
    {
        "in every call": "op()",
        "in a line seldom run": "if x % 50 == 0:\n        op()\n    return x",
        "in a line often run": "return op() if x % 30 == 0 else x",
        "of the smallest kind": "tiny_op()",
        "behind a call of a small function": "return small() + op()",
    }.values(),
)
@pytest.mark.parametrize("call", ["larger(i)", "y = op(), larger(i), op()"])
def test_a_function_with_ops_keeps_its_marks(shell: Shell, body: str, call: str) -> None:
    finished = run(
        shell,
        f"""
def small():
    return 1
def larger(x):
    {body}
for i in range(2000):
    {call}
marked = is_marked(larger)
    """,
    )

    assert shell.ip.user_ns["marked"]
    assert "larger" not in finished.note


def test_functions_are_found_in_classes_and_under_decorators(shell: Shell) -> None:
    finished = run(
        shell,
        """
        import functools
        def decorated(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)
            return wrapper
        class Small:
            def method(self):
                return 1
            @staticmethod
            def static():
                return 2
            @classmethod
            def of_class(cls):
                return 3
            @property
            def value(self):
                return 4
        @decorated
        def wrapped():
            return 5
        @functools.lru_cache(maxsize=0)
        def kept():
            return 6
        small = Small()
        for i in range(2000):
            small.method(), small.static(), small.of_class(), small.value, wrapped(), kept()
        functions = [
            Small.method, Small.static, Small.of_class.__func__, Small.value.fget,
            wrapped.__wrapped__, kept.__wrapped__,
        ]
        marked = [is_marked(function) for function in functions]""",
    )

    assert shell.ip.user_ns["marked"] == [False] * 6
    assert " and 3 more: " in finished.note


def test_functions_that_nothing_tells_apart_keep_their_marks(shell: Shell) -> None:
    run(
        shell,
        """
        first, second = lambda: 1, lambda: op()
        for i in range(500):
            first()
            second()
        marked = is_marked(first), is_marked(second)""",
    )

    assert shell.ip.user_ns["marked"] == (True, True)


def test_a_function_called_now_and_then_keeps_its_marks(shell: Shell) -> None:
    run(
        shell,
        """
        def small():
            return 1
        for i in range(20_000):
            if i % 200 == 0:
                small()
        marked = is_marked(small)""",
    )

    assert shell.ip.user_ns["marked"]


@pytest.mark.parametrize("listener", ["profile", "trace"])
def test_time_says_nothing_while_somebody_is_called_in_between(shell: Shell, listener: str) -> None:
    text = """
        def small():
            return 1
        for i in range(1000):
            small()
        marked = is_marked(small)"""
    before, listen = getattr(sys, f"get{listener}")(), getattr(sys, f"set{listener}")
    listen(lambda *_: None)
    try:
        run(shell, text)
    finally:
        listen(before)

    assert shell.ip.user_ns["marked"]


def test_a_look_that_fails_is_not_the_cells_failure(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(mark_buffers, "is_user_file", lambda _file: False)
    monkeypatch.setattr(HotFunctions, "look", fail)
    finished = run(
        shell,
        """
        def small():
            return recorded_op()
        for i in range(1000):
            small()""",
    )

    assert finished.lines == finished.true_lines


def test_what_a_handler_of_the_users_raises_meanwhile_is_raised(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(mark_buffers, "is_user_file", lambda file: file == __file__)
    monkeypatch.setattr(HotFunctions, "look", interrupted)
    with pytest.raises(TimeoutError):
        run(shell, "for i in range(1000):\n    op()")


def test_nothing_is_judged_while_a_schedule_waits(shell: Shell) -> None:
    session = SimpleNamespace(is_recording=False)
    shell.records_ops = lambda: session.is_recording
    shell.ip.user_ns["session"] = session
    run(
        shell,
        """
        def small():
            return 1
        for i in range(1000):
            small()
        waiting = is_marked(small)
        session.is_recording = True
        for i in range(5000):
            small()
        recording = is_marked(small)""",
    )

    assert shell.ip.user_ns["waiting"]
    assert not shell.ip.user_ns["recording"]


def test_what_was_defined_is_plain_when_the_cell_has_ended(shell: Shell) -> None:
    text = """
        def small(x):
            return x
        for i in range(1000):
            small(i)
        def other():
            return 2"""
    run(shell, text)
    left = [shell.ip.user_ns[name].__code__ for name in ("small", "other")]
    shell.run(textwrap.dedent(text).removeprefix("\n"), marked=False)

    assert left == [shell.ip.user_ns[name].__code__ for name in ("small", "other")]
