"""The text of a profiled cell: the first line becomes a call, everything else is as IPython would have had it."""

from __future__ import annotations

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from mtprof_nb.cell.source import is_profiled, profiled

BEGIN = "get_ipython().run_cell_magic('mtprofile', {!r}, None)\n"
RETURN = "get_ipython().find_cell_magic('mtprofile').__self__.recorded()\n"


@pytest.fixture
def manager() -> TransformerManager:
    manager = TransformerManager()
    manager.cleanup_transforms.append(profiled)
    return manager


BODIES = [
    "x = 1\n",
    "def f():\n    return 1\n\nf()\n",
    "'''\n  two\n    lines\n'''\n",
    "x = %time 1\n!ls $x\n?int\n",
    "    x = 1\n    y = 2\n",
    ">>> x = 1\n... y = 2\n",
    "%%time\nx = 1\n",
    "%%capture out\nprint('$x')\n\n",
    "x;\n",
    "# only a comment\n",
    "await f()\n",
]


@pytest.mark.parametrize("body", BODIES)
def test_the_rest_of_the_cell_is_what_it_is_without_the_first_line(manager: TransformerManager, body: str) -> None:
    assert manager.transform_cell("%%mtprofile -q\n" + body) == BEGIN.format("-q") + manager.transform_cell(body)


@pytest.mark.parametrize("body", BODIES)
def test_rewriting_is_pure(manager: TransformerManager, body: str) -> None:
    cell = "%%mtprofile\n" + body

    assert manager.transform_cell(cell) == manager.transform_cell(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "x = 1\n",
        "\n",
        "%%mtprofile?\n",
        "%%mtprofile??\nx\n",
        "%%mtprofile_other\nx\n",
        "%mtprofile x\n",
        "# first\n%%mtprofile\nx\n",
        "%%time\n%%mtprofile\nx\n",
    ],
)
def test_a_cell_that_does_not_begin_with_the_magic_is_left_alone(cell: str) -> None:
    lines = cell.splitlines(keepends=True)

    assert profiled(lines) == lines


def test_a_cell_of_no_lines_is_left_alone() -> None:
    assert profiled([]) == []


def test_blank_lines_under_the_magic_keep_the_numbers_of_the_others(manager: TransformerManager) -> None:
    assert manager.transform_cell("%%mtprofile\n\n\nx = 1\n") == BEGIN.format("") + "\n\nx = 1\n"


def test_an_indented_body_is_dedented_as_an_indented_cell_is(manager: TransformerManager) -> None:
    assert manager.transform_cell("%%mtprofile\n\n  x = 1\n  y = 2\n") == BEGIN.format("") + "\nx = 1\ny = 2\n"


def test_quotes_in_flags_survive(manager: TransformerManager) -> None:
    rewritten = manager.transform_cell('%%mtprofile --name "it\'s" -q  \nx\n')

    assert rewritten == BEGIN.format('--name "it\'s" -q') + "x\n"


@pytest.mark.parametrize("flags", ["-r", "--return", "-qr", "-o p -r"])
def test_to_return_the_profile_is_a_last_line(manager: TransformerManager, flags: str) -> None:
    assert manager.transform_cell(f"%%mtprofile {flags}\nx\n") == BEGIN.format(flags) + "x\n" + RETURN


def test_a_bad_flag_does_not_keep_the_text_from_being_rewritten(manager: TransformerManager) -> None:
    assert manager.transform_cell("%%mtprofile --bad -r\nx\n") == BEGIN.format("--bad -r") + "x\n"


@pytest.mark.parametrize("cell", ["%%mtprofile -h\nx = 1\n", "%%mtprofile --help"])
def test_to_ask_for_help_leaves_nothing_of_the_cell_to_run(manager: TransformerManager, cell: str) -> None:
    assert manager.transform_cell(cell) == BEGIN.format(cell.split()[1])


def test_an_empty_cell_is_refused_by_ipython_itself(manager: TransformerManager) -> None:
    assert manager.transform_cell("%%mtprofile -q\n") == "get_ipython().run_cell_magic('mtprofile', '-q', '')\n"


def test_a_terminal_waits_for_the_rest_of_the_cell(manager: TransformerManager) -> None:
    assert manager.check_complete("%%mtprofile\n")[0] == TransformerManager().check_complete("%%time\n")[0]
    assert manager.check_complete("%%mtprofile\nx = 1")[0] == "incomplete"
    assert manager.check_complete("%%mtprofile\nx = 1\n\n")[0] == "complete"


@pytest.mark.parametrize(
    ("cell", "expected"), [("%%mtprofile -q\nx", True), ("x", False), ("", False), ("%%time\nx", False)]
)
def test_a_parsed_cell_says_whether_it_is_profiled(manager: TransformerManager, cell: str, expected: bool) -> None:
    assert is_profiled(ast.parse(manager.transform_cell(cell))) is expected
