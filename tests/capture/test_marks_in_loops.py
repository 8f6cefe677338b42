"""Marks in a loop at a cell's own level: a name that the interpreter finds fast, however the cell is compiled."""

import ast
import dis
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from marked_cells import Shell, new_shell

from mtprof_nb.capture.marks.hot_functions import HotFunctions
from mtprof_nb.capture.marks.mark_transform import ENTER, LEAVE, LINE, MARK, Function, Place, Places, mark_tree

LOOPS = """
for i in range(2):
    op()
with scope() as x:
    while i:
        i -= op()
try:
    async for i in await rounds():
        op()
finally:
    if i:
        op()
match await value():
    case int(n) if n:
        op()
"""


@pytest.fixture
def shell() -> Iterator[Shell]:
    with new_shell() as shell:
        yield shell


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_interpreter_learns_where_the_mark_is(in_parts: bool) -> None:
    tree = ast.parse(LOOPS)
    mark_tree(tree, Places(), 0, frozenset(), 0, in_parts)
    # Between the statements of the cell there are marks alone, which no loop repeats.
    blocks = [ast.Module([stmt], []) for stmt in tree.body if not isinstance(stmt, ast.Delete | ast.Expr)]
    parts = blocks if in_parts else [tree]
    codes = [compile(part, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT) for part in parts]
    loads = [step.opname for code in codes for step in dis.get_instructions(code) if step.argval == MARK]

    assert len(codes) == (4 if in_parts else 1)
    assert len(loads) > 30
    assert set(loads) == {"LOAD_GLOBAL"}


def test_loops_of_a_cell_that_is_compiled_as_a_whole_have_their_lines(shell: Shell) -> None:
    text = """
        for i in range(2):
            op()
        while i:
            i -= op()
        class C:
            op()
        op()"""
    inner = textwrap.dedent(text).removeprefix("\n")
    run = shell.run(f"get_ipython().run_cell_magic('time', '', {inner!r})")

    run.result.raise_error()
    assert run.lines == run.true_lines == [2, 2, 4, 6, 7]


#: Bodies of `for i in rounds():` that are left early, and the lines of the ops: of the iterator, of the body, and of
#: the context as it is left.
LEFT_EARLY = {
    "continue": ("    with left(): op('body'); continue", [2, 3, 3, 2, 3, 3, 2]),
    "continue of a condition": ("    with left():\n        if op('body'): continue", [2, 4, 3, 2, 4, 3, 2]),
    "break": ("    with left():\n        op('body')\n        break", [2, 4, 3]),
    "an exception": (
        "    try:\n        with left():\n            {}[op('body')]\n    except KeyError: pass",
        [2, 5, 4, 2, 5, 4, 2],
    ),
    "continue through finally": (
        "    try: continue\n    finally: op('body')",
        [2, 4, 2, 4, 2],
    ),
    "continue in an inner loop": (
        "    with left():\n        for j in range(1):\n            continue\n        op('body')",
        [2, 6, 3, 2, 6, 3, 2],
    ),
}


def rounds(shell: Shell) -> Iterator[int]:
    """Two rounds, and an op before each and at the end; it has no marks."""
    for number in range(2):
        shell.op("rounds")
        yield number
    shell.op("rounds")


@contextmanager
def left(shell: Shell) -> Iterator[None]:
    """An op as the block is left; it has no marks."""
    try:
        yield
    finally:
        shell.op("left")


@pytest.mark.parametrize("way", LEFT_EARLY)
def test_what_runs_as_a_block_is_left_belongs_to_the_line_that_runs_it(shell: Shell, way: str) -> None:
    body, lines = LEFT_EARLY[way]
    shell.ip.user_ns.update(rounds=partial(rounds, shell), left=partial(left, shell))
    run = shell.run(f"for i in rounds():\n{body}\nNone")

    run.result.raise_error()
    assert run.lines == lines


def test_a_call_that_returns_from_a_with_leaves_it_on_its_line(shell: Shell) -> None:
    shell.ip.user_ns["left"] = partial(left, shell)
    run = shell.run("def f():\n    with left():\n        return op('returned')\nf();")

    run.result.raise_error()
    assert run.lines == [4, 3]


@pytest.mark.parametrize("interactivity", ["all", "last", "last_expr", "last_expr_or_assign", "none"])
def test_a_block_displays_what_it_does_without_marks(shell: Shell, interactivity: str) -> None:
    shell.ip.ast_node_interactivity = interactivity
    text = "x = op()\nfor i in range(2):\n    x + i\nif x:\n    x\n    with open('/dev/null'):\n        x"
    plain, marked = shell.run(text, marked=False), shell.run(text)

    assert without_counts(marked.output) == without_counts(plain.output)
    assert len(without_counts(plain.output)) == {"all": 4, "last": 2}.get(interactivity, 0)


def without_counts(output: str) -> list[str]:
    return [line.partition(": ")[2] for line in output.splitlines() if line]


def test_a_function_is_judged_by_the_cost_of_its_own_marks() -> None:
    places = Places()
    cell, small = places.add_scope(Function("<module>", 1)), places.add_scope(Function("small", 1))
    first, second = (places.number(Place(0, line, cell, LINE)) for line in (4, 5))
    enter, line, leave = (places.number(Place(0, 2, small, kind)) for kind in (ENTER, LINE, LEAVE))
    # At the cell's own level 100 ns pass from one mark to the next. In the function 300 do without an op, and some
    # Python takes 300 more.
    round_of_marks = [(100, first), (100, second), (500, enter), (300, line), (600, leave)]
    gap_ns, numbers = np.array(round_of_marks * 400).T
    unmarked: set[int] = set()
    HotFunctions(places, unmarked.update, mark_ns=300).look(np.stack([np.cumsum(gap_ns), numbers], 1))

    assert unmarked == {small}
