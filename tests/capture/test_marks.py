"""Marks change nothing of a cell, and say which of its lines every op belongs to."""

import builtins
import gc
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from types import CodeType
from typing import Any

import pytest
from marked_cells import Run, Shell, new_shell
from traces import event, make_trace

from mtprof_nb.capture import mark_buffers
from mtprof_nb.capture.mark_buffers import MarkBuffers
from mtprof_nb.capture.mark_lookup import with_marked_lines
from mtprof_nb.capture.marking import LINE, MARK, Place, Places

#: Each is run twice, with marks and without; every op stands on one line.
PROGRAMS = {
    "statements": """
        x = op(); y = op()
        z = x + op() if y else op()
        (a, *b), c = [op(), op(), op()], op()
        del a
        z""",
    "a silenced value": """
        op()
        x = op();""",
    "a call that returns in the middle of a line": """
        def f(x):
            y = op()
            return y + op()
        y = f(1) + op() + f(2) + op()
        y""",
    "calls of calls": """
        def inner(x):
            op()
            return op()
        def outer(x):
            y = inner(x) + op()
            return inner(y) + op()
        outer(outer(1)) + op()""",
    "recursion": """
        def count(n):
            op()
            below = count(n - 1) + op() if n else op()
            return below
        count(4) + op()""",
    "loops": """
        total = 0
        for i in range(op() + 2):
            if i == 1:
                op(); continue
            total += op()
        else:
            op()
        while total < 4 and op():
            total += op()
            if total == 3:
                break
        [op() for i in range(3)], {op() for i in range(2)}, {i: op() for i in range(2)}, sum(op() for i in range(2))""",
    "an iterator that works between two rounds": """
        class Batches:
            def __iter__(self):
                self.left = 3
                return self
            def __next__(self):
                self.left -= 1
                if not self.left:
                    raise StopIteration
                return op()
        for batch in Batches():
            op()
        list(Batches()), op()""",
    "conditions": """
        def is_positive(x):
            op()
            return x > 0
        if is_positive(-1) and op():
            op()
        elif is_positive(1) and op():
            op()
        else:
            op()""",
    "exceptions": """
        def fail(x):
            op()
            raise ValueError(x)
        try:
            op()
            fail(1)
        except ValueError as error:
            op()
            text = str(error)
        else:
            op()
        finally:
            op()
        text""",
    "an exception swallowed below": """
        class Lazy:
            def __getattr__(self, name):
                op()
                raise AttributeError(name)
        hasattr(Lazy(), "x"), op()""",
    "exception groups": """
        try:
            op()
            raise ExceptionGroup("two", [ValueError(1), TypeError(2)])
        except* ValueError as group:
            op()
        except* TypeError:
            op()""",
    "return through finally": """
        def f():
            try:
                op()
                return op()
            finally:
                op()
        f() + op()""",
    "context managers": """
        from contextlib import contextmanager
        @contextmanager
        def scope():
            op()
            try:
                yield op()
            finally:
                op()
        with scope() as x, scope():
            op()
        def f():
            with scope():
                return op()
        f() + op()""",
    "generators": """
        def numbers(n):
            for i in range(n):
                op()
                got = yield i + op()
                op()
            return op()
        def delegating(n):
            last = yield from numbers(n)
            op()
            yield last
        x = next(numbers(2)) + op()
        list(delegating(2)), op()
        for number in numbers(3):
            op()
        generator = numbers(3)
        next(generator); op()
        generator.send(1); op()
        try:
            generator.throw(KeyError)
        except KeyError:
            op()
        generator.close()
        op()""",
    "decorators": """
        import functools
        def twice(f):
            op()
            @functools.wraps(f)
            def g(*args):
                return f(*args) + f(*args) + op()
            return g
        @twice
        @twice
        def work(x):
            "Works."
            return op()
        work(1), work.__doc__, work.__name__""",
    "a docstring": '''
        def f():
            "Says something."
        def g():
            """Says more."""
            return op()
        class C:
            "Holds something."
            x = op()
        f.__doc__, g.__doc__, C.__doc__, f(), g()''',
    "classes": """
        from dataclasses import dataclass
        from enum import Enum
        class Colour(Enum):
            RED = 1
            BLUE = op() + 1
        @dataclass
        class Point:
            x: int
            y: int = 2
            @property
            def sum(self):
                return self.x + self.y + op()
            @staticmethod
            def make():
                return Point(op())
            @classmethod
            def zero(cls):
                return cls(0, op())
        class Child(Point):
            __hidden = op()
            def total(self):
                return super().sum + self.__hidden + op()
        list(Colour), Point.make().sum + op(), Child(1).total(), Child.zero(), Child.__annotations__""",
    "a namespace of the class's own": """
        class Everything(dict):
            def __missing__(self, name):
                if name.startswith("_") or name == "op":
                    raise KeyError(name)
                return name
        class Meta(type):
            @classmethod
            def __prepare__(cls, name, bases):
                return Everything()
            def __new__(cls, name, bases, namespace):
                return type.__new__(cls, name, bases, dict(namespace))
        class Made(metaclass=Meta):
            first = undefined
            second = op()
        Made.first, Made.second""",
    "global and nonlocal": """
        count = 0
        def outer():
            global count
            mine = 0
            def inner():
                nonlocal mine
                global count
                mine += op(); count += op()
            inner(); inner()
            return mine
        outer(), count, op()""",
    "match": """
        def kind(x):
            match x:
                case {"a": int(n)} if op():
                    return op()
                case [first, *rest]:
                    op()
                    return first
                case _:
                    op()
        kind({"a": 1}), kind([1, 2]), kind(None), op()""",
    "await": """
        import asyncio
        async def child(n):
            op()
            await asyncio.sleep(0)
            return op()
        async def parent():
            x = await child(1) + op()
            ys = await asyncio.gather(child(1), child(2))
            op()
            async for y in agen():
                op()
            async with scope():
                op()
            return [await child(n) async for n in agen()] and x + op()
        async def agen():
            for i in range(2):
                op()
                yield op()
        class scope:
            async def __aenter__(self):
                op()
            async def __aexit__(self, *error):
                op()
        result = await parent() + op()
        result""",
    "a future": """
        from __future__ import annotations
        def f(x: Undefined) -> Undefined:
            return op()
        f(1), f.__annotations__""",
    "f-strings, lambdas, walrus": """
        double = lambda x: x + op()
        if (n := double(1) + op()):
            text = f"{op()} {n!r:>5} {double(2)}"
        text""",
    "threads": """
        from threading import Thread
        def work(n):
            for i in range(n):
                op()
            op()
        threads = [Thread(target=work, args=(3,)) for i in range(3)]
        for thread in threads:
            thread.start()
            op()
        for thread in threads:
            thread.join()
        op()""",
    "its own source": """
        import inspect
        def f(x):
            # A comment.
            return (x +
                    1)
        inspect.getsource(f), inspect.signature(f), f.__code__.co_firstlineno, f.__code__.co_varnames, f(1)""",
    "locals": """
        def f(x):
            y = 1
            return locals()
        f(2), sorted(name for name in globals() if "mark" in name or "mtprof" in name), sorted(dir())[-1]""",
    "a warning of the compiler": """
        x = op()
        def f():
            return x is 1
        f()""",
    "a deep stack of blocks": """
        def f():
            for a in range(1):
                with open("/dev/null"):
                    try:
                        while op():
                            if op():
                                for b in range(1):
                                    return op()
                    finally:
                        op()
        f() + op()""",
}

FAILURES = {
    "in a line": """
        x = 1
        y = x / 0
        z = 2""",
    "in a function": """
        def f(x):
            y = x
            return (y +
                    "a")
        def g():
            return f(1)
        g()""",
    "while another is handled": """
        def f():
            try:
                {}["a"]
            except KeyError:
                raise ValueError("b")
        f()""",
    "from another": """
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("no") from error""",
    "in a generator": """
        def g():
            yield 1
            yield 1 / 0
        list(g())""",
    "in a coroutine": """
        async def f():
            await g()
        async def g():
            raise KeyError(1)
        await f()""",
    "in a class": """
        class C:
            x = 1
            y = undefined""",
    "of syntax, in a part": """
        x = 1
        return x""",
    "of syntax": """
        x = 1
        def f(:
            pass""",
    "of a late global": """
        def f():
            x = 1
            global x""",
    "an exit": """
        raise SystemExit(3)""",
    "an interrupt": """
        def f():
            raise KeyboardInterrupt
        f()""",
}


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


def test_a_cell_that_cannot_be_marked_runs_unmarked_and_says_so(shell: Shell) -> None:
    depth = 20
    blocks = "".join(f"{' ' * (level + 1)}while True:\n" for level in range(depth))
    run = shell.run(f"def f():\n{blocks}{' ' * (depth + 1)}return op()\nf()")

    assert run.result.success
    assert len(run.ops) == 1
    assert run.lines == [None]
    assert "the cell runs without line marks (SyntaxError: too many statically nested blocks" in run.note


def test_marking_ends_at_its_limit_and_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_buffers, "PACKING", 8)
    monkeypatch.setattr(mark_buffers, "PACKINGS", 4)
    run = shell.run("for i in range(40):\n    op()\nop()")

    known = [line for line in run.lines if line is not None]
    assert 8 < len(known) < 32
    assert run.lines == known + [None] * (41 - len(known))
    assert known == run.true_lines[: len(known)]
    assert run.note == "more than 32 statements ran: later lines are not marked"


def test_marks_are_packed_without_losing_one(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_buffers, "PACKING", 7)
    monkeypatch.setattr(mark_buffers, "PACKINGS", 10_000)
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


def test_a_wall_clock_that_was_set_meanwhile_moves_marks_as_it_moves_kineto() -> None:
    places, buffers = Places(), MarkBuffers(print)
    scope = places.add_scope("<module>")
    first, second = (places.number(Place(0, line, scope, LINE)) for line in (1, 2))
    buffers._buffers[0].items.extend([1_000, first, 2_000, second])
    buffers.began, buffers.ended = (0, 5_000_000), (10_000, 5_000_000 + 10_000 + 1_000_000_000)
    trace = make_trace(
        [
            event("a", 5_000_000 + 150_000_000, 5_000_000 + 150_000_001, thread=buffers.cell_thread),
            event("b", 5_000_000 + 250_000_000, 5_000_000 + 250_000_001, thread=buffers.cell_thread),
        ]
    )

    def lines(**changed: Any) -> list[int]:
        found = with_marked_lines(replace(trace, **changed), buffers, places, ["cell"])
        return [found.lines[line].line for line in found.line]

    assert lines(hooks=("kineto",)) == [1, 2]
    assert lines(hooks=("dispatch",)) == [2, 2]


def test_a_backward_op_on_a_thread_of_the_engine_has_the_line_that_waits_for_it() -> None:
    places, buffers = Places(), MarkBuffers(print)
    number = places.number(Place(0, 4, places.add_scope("<module>"), LINE))
    perf_ns, wall_ns = buffers.began
    buffers._buffers[0].items.extend([perf_ns, number])
    trace = make_trace(
        [
            event("a", wall_ns + 10, wall_ns + 20, thread=1, phase="backward"),
            event("b", wall_ns + 20, wall_ns + 30, thread=1),
        ]
    )

    assert with_marked_lines(trace, buffers, places, ["cell"]).line.tolist() == [0, -1]
