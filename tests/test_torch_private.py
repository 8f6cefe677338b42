"""Private names of torch are used in one folder, whose table lists them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mtprof_nb"
ROOM = PACKAGE / "capture" / "torch_private"
#: Folders and files that use private names all the same, and why.
ELSEWHERE = {
    "capture/kineto": "drives torch's low-level profiler, which is private as a whole",
    "capture/eager": "private names of MindTorch and Candle",
    "cluster/rank_cell.py": "the target of ipyparallel's magic",
    "tables/event.py": "`_build_metadata` of torch: tables import nothing of `capture`",
}
#: Private names of Python's own that have no public counterpart.
PYTHON = {
    *("_replace", "_asdict", "_fields", "_field_defaults"),
    *("sys._getframe", "sys._current_frames", "asyncio._get_running_loop", "argparse._ArgumentGroup"),
}
PRIVATE = re.compile(r"_[a-zA-Z]\w*")
DOTTED = re.compile(r"torch(\.\w+)*\._[a-zA-Z]\w*(\.\w+)*")
#: Torch's module of C functions. Its classes have public names, but nothing in it is public.
C_MODULE = "_C"


def _docstrings(tree: ast.AST) -> set[int]:
    """The ids of the nodes that are docstrings."""
    bodies = [getattr(node, "body", None) for node in ast.walk(tree)]
    firsts = [body[0] for body in bodies if isinstance(body, list) and body]
    return {id(first.value) for first in firsts if isinstance(first, ast.Expr)}


def _own_names(tree: ast.AST) -> set[str]:
    """Private names that a file gives to objects of its own."""
    nodes = list(ast.walk(tree))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_own(node.value)}
    return defined | assigned | attributes


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _private_names(tree: ast.AST, known: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Line and name of each private name of another library: an attribute, an import, or a string.

    A string counts if it is a dotted name of torch's, or one of the names that are `known`.
    """
    own, documented = _own_names(tree), _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr) and not _is_own(node.value):
            text = ast.unparse(node)
            is_torchs = "torch" in text.partition("._")[0] or C_MODULE in text.split(".")
            if is_torchs or not ({text, node.attr} & PYTHON or node.attr in own):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            base = getattr(node, "module", None) or ""
            for name in (f"{base}.{alias.name}".strip(".") for alias in node.names):
                if DOTTED.fullmatch(name):
                    yield node.lineno, name
        elif isinstance(node, ast.Constant) and id(node) not in documented:
            text = str(node.value)
            if DOTTED.fullmatch(text) or text in known:
                yield node.lineno, text


def _listed() -> set[str]:
    """The private names in the table of the folder's docstring."""
    text = ast.get_docstring(ast.parse((ROOM / "__init__.py").read_text())) or ""
    quoted = re.findall(r"`([\w.]+)`", text.partition("The C++ recorder")[0])
    parts = {part for name in quoted if not name.endswith(".py") for part in name.split(".")}
    return {part for part in parts if PRIVATE.fullmatch(part)}


def _used_in_room() -> set[str]:
    trees = [ast.parse(path.read_text()) for path in ROOM.glob("*.py")]
    names = [name for tree in trees for _, name in _private_names(tree, frozenset(_listed()))]
    return {part for name in names for part in name.split(".") if PRIVATE.fullmatch(part)}


def test_no_private_name_of_torch_is_used_outside_of_its_folder() -> None:
    known = frozenset(_listed())
    used = {
        f"{file}:{line}: {name}"
        for path in PACKAGE.rglob("*.py")
        if ROOM not in path.parents and not (file := path.relative_to(PACKAGE).as_posix()).startswith(tuple(ELSEWHERE))
        for line, name in _private_names(ast.parse(path.read_text()), known)
    }

    assert used == set()


def test_the_table_lists_the_private_names_that_the_folder_uses() -> None:
    assert _used_in_room() == _listed()


@pytest.mark.parametrize("file", ELSEWHERE)
def test_a_place_that_is_left_out_uses_private_names(file: str) -> None:
    paths = [PACKAGE / file] if file.endswith(".py") else (PACKAGE / file).glob("*.py")

    assert any(list(_private_names(ast.parse(path.read_text()))) for path in paths)


@pytest.mark.parametrize(
    "source",
    [
        "torch._C",
        "torch.autograd._get_sequence_nr()",
        "self._torch.autograd._get_sequence_nr()",
        "node._sequence_nr()",
        "from torch._C import Node",
        "from torch.utils._python_dispatch import TorchDispatchMode",
        "from torch.autograd import _get_sequence_nr",
        "import torch._inductor.config",
        "sys.modules.get('torch._inductor.config')",
        "getattr(op, '_overloadpacket', op)",
    ],
)
def test_a_private_name_is_seen_however_it_is_reached(source: str) -> None:
    assert list(_private_names(ast.parse(source), frozenset({"_overloadpacket"})))


@pytest.mark.parametrize(
    "source",
    [
        "self._torch.autograd.profiler",
        "frame._replace(line=1)",
        "sys._getframe(1)",
        "class A:\n    _last = None\n    def f(self, other):\n        return other._start < self._start",
        "'_runtime'",
        "def f():\n    'Reads `torch._C`.'",
    ],
)
def test_names_of_python_and_of_the_file_itself_are_allowed(source: str) -> None:
    assert list(_private_names(ast.parse(source), frozenset({"_overloadpacket"}))) == []
