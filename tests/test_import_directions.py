"""Data runs downhill: every room imports only rooms below it, and importing the package is cheap."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mtprof_nb"

MODEL = {
    "errors",
    "schema",
    "stack_tree",
    "trace",
    "device_facts",
    "bookkeeping",
    "input_values",
    "intervals",
    "merge",
    "source_files",
}
#: torch's surface over `analysis`: siblings, which may use one another.
SURFACE = {"averages", "event", "events", "lines", "table"}
ANSWERS = {*MODEL, "analysis", *SURFACE}
OUTPUTS = {"export", "views"}
#: A room is a module or folder of the package; it may import itself and what stands here.
MAY_IMPORT = {
    "errors": set(),
    "schema": set(),
    "stack_tree": {"schema"},
    "input_values": set(),
    "trace": {"errors", "schema", "stack_tree"},
    "device_facts": {"trace"},
    "bookkeeping": {"errors", "trace"},
    "intervals": {"errors", "trace"},
    "source_files": {"errors"},
    "merge": {"errors", "schema", "stack_tree", "trace"},
    "capture": MODEL,
    "analysis": MODEL,
    **dict.fromkeys(SURFACE, ANSWERS),
    "export": ANSWERS,
    "views": ANSWERS,
    "results": {*ANSWERS, *OUTPUTS},
    "profiler": {*ANSWERS, *OUTPUTS, "results", "capture"},
    "cell": {*ANSWERS, *OUTPUTS, "results", "capture", "profiler"},
    "magic": {*ANSWERS, *OUTPUTS, "results", "capture", "profiler", "cell", "__init__"},
    "__init__": {*ANSWERS, *OUTPUTS, "results", "capture", "profiler", "cell", "magic"},
}
#: Upward, yet only when called: lists of averages and of events write themselves to files, as torch's do.
ON_DEMAND = {
    ("averages", "mtprof_nb.export.averages_files"),
    ("events", "mtprof_nb.export.chrome_trace"),
    ("events", "mtprof_nb.export.averages_files"),
    ("events", "mtprof_nb.export.collapsed_stacks"),
}
NAMED_ROOM = re.compile(rf"mtprof_nb\.({'|'.join(MAY_IMPORT)})(\.\w+)*(:\w+)?")
HEAVY = ("torch", "IPython", "ipywidgets", "anywidget", "plotly", "pandas")


def _rooms(package: Path) -> set[str]:
    return {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


def _imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of whatever is imported anywhere in `tree`, or named in a string as a room is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED_ROOM.fullmatch(node.value):
            # import_module("…"), and tables of names that are imported when first used.
            yield node.lineno, node.value.replace(":", ".")


def _edges(package: Path) -> Iterator[tuple[str, str, str]]:
    """(where, importing room, imported room) for every import of one room by another."""
    rooms = _rooms(package) | set(MAY_IMPORT)
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(name for name in names if name != "__init__")
        for line, target in _imported(ast.parse(path.read_text()), module, path.stem == "__init__"):
            root, _, inner = target.partition(".")
            first = inner.partition(".")[0]
            imported = first if first in rooms else "__init__"
            is_on_demand = (names[1], target.rpartition(".")[0]) in ON_DEMAND
            if root == package.name and imported != names[1] and not is_on_demand:
                yield f"{path.relative_to(package.parent)}:{line}", names[1], imported


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
    package = _package(tmp_path, **{"capture/session": source, "capture/hook": "", "trace": "", "errors": ""})

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
