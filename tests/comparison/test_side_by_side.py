"""Versions of a file side by side."""

from traces import event, make_trace
from two_programs import run, sides

from mtprof_nb.comparison.side_by_side import Row, Version, side_by_side
from mtprof_nb.model.trace import Trace


def _ran(file: str, text: str, *lines: tuple[int, int]) -> Trace:
    """A recording of a file: for each (line, nanoseconds) one op."""
    rows, now = [], 0
    for line, length in lines:
        rows.append(event("aten::mm", now, now + length, line=(file, line)))
        now += length
    return make_trace(rows, sources={file: text})


def test_edited_new_and_gone_lines_stand_beside_each_other() -> None:
    before = _ran("t.py", "a = 1\nfor x in xs:\n    y = slow(x)\n    z = y + 1", (3, 300), (4, 20))
    after = _ran("t.py", "a = 1\nfor x in xs:\n    y = quick(x)\n    print('x')", (3, 30))

    (found,) = side_by_side(sides(before, after))

    assert (found.a_title, found.b_title) == ("t.py", "t.py")
    assert found.rows == (
        Row(Version(1, "a = 1", None), Version(1, "a = 1", None), ""),
        Row(Version(2, "for x in xs:", None), Version(2, "for x in xs:", None), ""),
        Row(Version(3, "    y = slow(x)", 300.0), Version(3, "    y = quick(x)", 30.0), "edited"),
        Row(Version(4, "    z = y + 1", 20.0), None, "gone"),
        Row(None, Version(4, "    print('x')", None), "new"),
    )


def test_lines_far_from_a_change_are_left_out() -> None:
    lines = [f"line{number} = {number}" for number in range(1, 31)]
    edited = [*lines]
    edited[1], edited[25] = "changed(2)", "other_change(26)"

    (found,) = side_by_side(sides(_ran("t.py", "\n".join(lines), (2, 10)), _ran("t.py", "\n".join(edited), (2, 5))))

    numbers = [None if row is None else (row.b or row.a).number for row in found.rows]  # type: ignore[union-attr]
    assert numbers == [1, 2, 2, 3, 4, 5, None, 23, 24, 25, 26, 26, 27, 28, 29]


def test_equal_files_are_not_shown() -> None:
    text = "y = x @ w\nz = y + 1"

    assert side_by_side(sides(_ran("t.py", text, (1, 10)), _ran("t.py", text, (1, 12)))) == []


def test_two_functions_of_one_file_are_versions_of_each_other() -> None:
    text = (
        "w = 2\ndef f(x):\n    if x:\n        y = x @ w\n    return y * 2\n\ndef g(x):\n    y = x @ w\n    return y\nz"
    )

    (found,) = side_by_side(sides(_ran("t.py", text, (4, 10)), _ran("t.py", text, (8, 9), (9, 1))))

    assert found.rows == (
        Row(Version(2, "def f(x):", None), Version(7, "def g(x):", None), "edited"),
        Row(Version(3, "    if x:", None), None, "gone"),
        Row(Version(4, "        y = x @ w", 10.0), Version(8, "    y = x @ w", 9.0), ""),
        Row(Version(5, "    return y * 2", None), Version(9, "    return y", 1.0), "edited"),
        Row(Version(6, "", None), None, "gone"),
    )


def test_times_are_those_of_one_step_if_steps_are_compared() -> None:
    def steps(count: int, text: str) -> Trace:
        rows = [event("aten::mm", 100 * at, 100 * at + 40, step=at, line=("t.py", 1)) for at in range(count)]
        return make_trace(rows, sources={"t.py": text})

    (found,) = side_by_side(sides(steps(2, "y = slow(x)"), steps(4, "y = quick(x)")))

    assert found.rows == (Row(Version(1, "y = slow(x)", 40.0), Version(1, "y = quick(x)", 40.0), "edited"),)


def test_without_lines_there_is_nothing_to_show() -> None:
    assert side_by_side(sides(run(("aten::mm", 1)), run(("aten::mm", 1)))) == []


def _recorded(files: dict[str, str], *lines: tuple[str, int, int]) -> Trace:
    """A recording of several cells or files: for each (file, line, nanoseconds) one op."""
    rows, now = [], 0
    for file, line, length in lines:
        rows.append(event("aten::mm", now, now + length, line=(file, line)))
        now += length
    return make_trace(rows, sources=files)


NET = """class Block:
    def forward(self, x):
        return x.relu()

class Net:
    def forward(self, x):
        h = x @ self.w
        return self.block(h)

    def loss(self, h):
        return h.sum()
"""
CELLS = [f"<ipython-input-{number}-0>" for number in range(4)]


def test_a_function_that_another_cell_replaced_stands_beside_the_new_one() -> None:
    new = "def forward(self, x):\n    h = x.mm(self.w)\n    return self.block(h)\nNet.forward = forward"
    before = _recorded({CELLS[0]: NET}, (CELLS[0], 3, 10), (CELLS[0], 7, 100), (CELLS[0], 8, 1), (CELLS[0], 11, 5))
    after = _recorded({CELLS[2]: NET, CELLS[3]: new}, (CELLS[2], 3, 10), (CELLS[3], 2, 50), (CELLS[3], 3, 1))

    (found,) = side_by_side(sides(before, after))

    assert (found.a_title, found.b_title) == ("cell", "cell")
    assert found.rows == (
        Row(Version(6, "    def forward(self, x):", None), Version(1, "def forward(self, x):", None), ""),
        Row(Version(7, "        h = x @ self.w", 100.0), Version(2, "    h = x.mm(self.w)", 50.0), "edited"),
        Row(Version(8, "        return self.block(h)", 1.0), Version(3, "    return self.block(h)", 1.0), ""),
        Row(Version(9, "", None), None, "gone"),
    )


def test_a_function_of_another_cell_that_one_side_lacks_is_new_or_gone() -> None:
    main, more = "for x in xs:\n    y = x @ w", "def scale(y):\n    return y * 2\n\nprint('defined')"
    short = _recorded({CELLS[0]: main}, (CELLS[0], 2, 10))
    long = _recorded({CELLS[1]: main, CELLS[2]: more}, (CELLS[1], 2, 10), (CELLS[2], 2, 3))

    (added,), (removed,) = side_by_side(sides(short, long)), side_by_side(sides(long, short))

    head, line, blank = (Version(1, "def scale(y):", None), Version(2, "    return y * 2", 3.0), Version(3, "", None))
    assert (added.a_title, added.b_title) == ("", "cell")
    assert added.rows == tuple(Row(None, version, "new") for version in (head, line, blank))
    assert (removed.a_title, removed.b_title) == ("cell", "")
    assert removed.rows == tuple(Row(version, None, "gone") for version in (head, line, blank))


def test_a_branch_or_a_function_that_did_not_run_again_is_no_change() -> None:
    text = "def f(x):\n    if first:\n        x = x + 1\n    return x @ w\n\ndef g(x):\n    return x"

    assert side_by_side(sides(_ran("t.py", text, (3, 5), (4, 9), (7, 1)), _ran("t.py", text, (4, 9)))) == []
