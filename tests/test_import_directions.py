"""Data runs downhill: every room imports only rooms below it, and importing the package is cheap."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mtprof_nb"

#: Who a room may import, beside itself and rooms inside it. A room is a folder of the package, or a module on its own.
BASE = {"errors", "model"}
#: Modules of `capture` that its own folders build on.
OF_CAPTURE = {
    f"capture.{name}"
    for name in ("activities", "clock", "distributed", "hook", "interrupts", "registry", "torch_scope")
}
HOOKS = {*BASE, *OF_CAPTURE, "capture.shared"}
ANALYSIS = {"analysis", "analysis.lines", "analysis.memory"}
ANSWERS = {*BASE, *ANALYSIS, "results"}
OUTPUTS = {"export", "views", "views.charts", "views.tables", "views.static", "views.panel"}
CAPTURE = {"capture", *OF_CAPTURE, "capture.marks"}
MAY_IMPORT = {
    "errors": set(),
    "model": {"errors"},
    **{module: {*BASE, *OF_CAPTURE} for module in OF_CAPTURE},
    # It names the hooks, and imports one when it is made.
    "capture.registry": {*BASE, "capture.shared", "capture.kineto", "capture.dispatch", "capture.eager"},
    "capture.shared": {*BASE, *OF_CAPTURE},
    "capture.kineto": HOOKS,
    # It follows threads that Kineto does not.
    "capture.dispatch": {*HOOKS, "capture.kineto"},
    "capture.eager": HOOKS,
    "capture.marks": HOOKS,
    "capture": {*HOOKS, "capture.kineto", "capture.dispatch", "capture.eager"},
    **{room: {*BASE, *ANALYSIS} for room in ANALYSIS},
    "results": ANSWERS,
    "export": ANSWERS,
    "views": ANSWERS,
    "views.tables": {*ANSWERS, "views"},
    "views.charts": {*ANSWERS, "views"},
    "views.static": {*ANSWERS, "views", "views.tables", "views.charts"},
    "views.panel": {*ANSWERS, *OUTPUTS},
    "profiler": {*ANSWERS, *OUTPUTS, *CAPTURE},
    "cell": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler"},
    "magic": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler", "cell", "__init__"},
    "__init__": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler", "cell", "magic"},
}
#: Upward, yet only when called: results write and show themselves.
ON_DEMAND = {
    ("results", "export"),
    ("results", "views.charts"),
    ("results", "views.panel"),
}
NAMED_ROOM = re.compile(rf"mtprof_nb\.({'|'.join(map(re.escape, MAY_IMPORT))})(\.\w+)*(:\w+)?")
HEAVY = ("torch", "IPython", "ipywidgets", "anywidget", "plotly", "pandas")


def _rooms(package: Path) -> set[str]:
    """The folders of the package, and the modules on its top floor."""
    modules = {path.stem for path in package.glob("*.py")}
    folders = {path.parent.relative_to(package) for path in package.rglob("*/__init__.py")} - {Path()}
    return modules | {".".join(folder.parts) for folder in folders}


def _room_of(module: str) -> str:
    """The innermost room of the table that a module, by its name below the package, is in."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in MAY_IMPORT), "__init__")


def _imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Place and dotted name of whatever is imported anywhere in `tree`, or named in a string as a room is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED_ROOM.fullmatch(node.value):
            # import_module("…"), and tables of names that are imported when first used.
            yield node, node.value.replace(":", ".")


def _is_put_off(node: ast.AST) -> bool:
    """Whether imports inside `node` wait for a call, or are for types alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _edges(package: Path) -> Iterator[tuple[str, str, str]]:
    """(where, importing room, imported room) for every import of one room by another."""
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(name for name in names if name != "__init__")
        room = _room_of(module.partition(".")[2] or "__init__")
        tree = ast.parse(path.read_text())
        on_demand = {id(node) for scope in ast.walk(tree) if _is_put_off(scope) for node in ast.walk(scope)}
        for node, target in _imported(tree, module, path.stem == "__init__"):
            root, _, inner = target.partition(".")
            imported = _room_of(inner)
            is_on_demand = id(node) in on_demand and (room, imported) in ON_DEMAND
            if root == package.name and imported != room and not is_on_demand:
                yield f"{path.relative_to(package.parent)}:{node.lineno}", room, imported


def _upward(package: Path) -> list[str]:
    return [
        f"{where}: {room} may not import {imported}"
        for where, room, imported in _edges(package)
        if imported not in MAY_IMPORT.get(room, ())
    ]


def _package(folder: Path, **sources: str) -> Path:
    package = folder / "mtprof_nb"
    for name, source in {"__init__": "", "capture/__init__": "", "views/__init__": "", **sources}.items():
        path = (package / name).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return package


def test_no_room_imports_a_room_above_it() -> None:
    assert _upward(PACKAGE) == []


def test_every_room_has_its_place_in_the_table() -> None:
    assert _rooms(PACKAGE) - set(MAY_IMPORT) == set()


def test_only_the_magic_and_the_public_names_import_the_profiler() -> None:
    importers = {room for _, room, imported in _edges(PACKAGE) if imported == "profiler"}

    # `cell` is the magic's own back room.
    assert importers <= {"magic", "cell", "__init__"}


@pytest.mark.parametrize(
    "source",
    [
        "from mtprof_nb.views import panel",
        "from mtprof_nb import views",
        "import mtprof_nb.views.panel.show_panel",
        "import mtprof_nb",
        "from mtprof_nb import profile",
        "from .. import views",
        "from ..views.panel import Panel",
        "def show():\n    from mtprof_nb.views.panel.show_panel import Panel\n    return Panel",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mtprof_nb.views.panel.show_panel import Panel",
        "def show():\n    return import_module('mtprof_nb.views.panel.show_panel')",
        "LAZY = {'Panel': 'mtprof_nb.views.panel.show_panel:Panel'}",
    ],
)
def test_an_upward_import_is_found_however_it_is_written(tmp_path: Path, source: str) -> None:
    package = _package(tmp_path, **{"capture/session": source, "views/panel": "class Panel: ..."})

    assert len(_upward(package)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from mtprof_nb.model.trace import Trace",
        "from ..errors import HookError",
        "from . import hook",
        "from .hook import Hook",
        "import mtprof_nb_other.views",
        "version('mtprof_nb')",
        "matcher(identifier='mtprof_nb.flags')",
        "'mtprof_nb.views in the middle of a text.'",
    ],
)
def test_a_downward_import_is_not_taken_for_an_upward_one(tmp_path: Path, source: str) -> None:
    package = _package(tmp_path, **{"capture/session": source, "capture/hook": "", "model/trace": "", "errors": ""})

    assert _upward(package) == []


def _heavy_modules_after(program: str) -> str:
    report = f"\nimport sys\nprint(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program + report], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_importing_the_package_imports_no_runtime_and_no_notebook_library() -> None:
    assert _heavy_modules_after("import mtprof_nb") == ""


def test_naming_everything_public_imports_no_runtime_and_no_notebook_library() -> None:
    # The two functions that IPython itself calls may import it.
    program = """
import mtprof_nb
for name in mtprof_nb.__all__:
    if not name.endswith("ipython_extension"):
        getattr(mtprof_nb, name)
"""

    assert _heavy_modules_after(program) == ""
