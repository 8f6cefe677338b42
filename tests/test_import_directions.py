"""Imports follow the direction of the data, and importing the package is cheap."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mtprof_nb"

#: A room, which is a folder or module of the package: the rooms that it may import, also inside functions.
LAYERS = {
    "errors": "",
    "model": "errors",
    "building": "errors model",
    "reading": "errors model building",
    "capture": "errors model building reading",
    "analysis": "errors model",
    "advice": "errors model analysis",
    "export": "errors model analysis",
    "tables": "errors model analysis advice export",
    "comparison": "errors model analysis advice tables",
    "views": "errors model analysis advice export tables comparison",
    "recording": "errors model analysis advice export tables views",
    "loading": "errors model reading views recording",
    "profiler": "errors model capture recording",
    "comparing": "errors model analysis advice tables comparison views loading profiler",
    "cell": "errors model capture analysis export comparison views recording loading profiler comparing",
    "cluster": "errors model capture reading analysis views recording loading profiler cell",
    "magic": "profiler comparing cell cluster",
    "cli": "errors model capture export comparison views recording loading profiler comparing cell __init__",
    "__init__": "errors model capture export loading profiler comparing cell cluster magic",
    "__main__": "cli",
}
HOOKS = ("native", "kineto", "eager")
NAMED = re.compile(r"mtprof_nb(\.\w+)+(:\w+)?")
HEAVY = ("ipyparallel", "torch", "IPython", "ipywidgets", "anywidget", "plotly", "pandas")


def _rooms(package: Path) -> set[str]:
    """The folders of the package, and the modules beside them."""
    return {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/*.py")}


def _room(module: str) -> str:
    """The room of a module by its name below the package; a hook's folder is a room of its own."""
    names = [*module.split("."), ""]
    return f"capture.{names[1]}" if names[0] == "capture" and names[1] in HOOKS else names[0] or "__init__"


def _may_import(room: str, imported: str) -> bool:
    if room.startswith("capture.") and imported.startswith("capture."):
        return False
    top, imported_top = room.partition(".")[0], imported.partition(".")[0]
    return top == imported_top or imported_top in LAYERS.get(top, "").split()


def _imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Node and dotted name of each import in `tree`, and of each string that names a module of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            # import_module("…"), and tables of names that are imported when first used.
            yield node, node.value.replace(":", ".")


def _edges(package: Path) -> Iterator[tuple[str, str, str]]:
    """(file and line, importing room, imported room) for every import of one room by another."""
    rooms = _rooms(package)
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(name for name in names if name != "__init__")
        room = _room(module.partition(".")[2])
        for node, target in _imported(ast.parse(path.read_text()), module, path.stem == "__init__"):
            root, _, inner = target.partition(".")
            imported = _room(inner) if inner.partition(".")[0] in rooms else "__init__"
            is_text = isinstance(node, ast.Constant) and imported == "__init__"
            if root == package.name and imported != room and not is_text:
                yield f"{path.relative_to(package.parent)}:{node.lineno}", room, imported


def _forbidden(package: Path) -> list[str]:
    return [
        f"{where}: {room} may not import {imported}"
        for where, room, imported in _edges(package)
        if not _may_import(room, imported)
    ]


def _package(folder: Path, **sources: str) -> Path:
    package = folder / "mtprof_nb"
    for name, source in {"__init__": "", "capture/__init__": "", "views/__init__": "", **sources}.items():
        path = (package / name).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return package


def test_no_folder_imports_against_the_direction() -> None:
    assert _forbidden(PACKAGE) == []


def test_every_folder_and_module_has_an_entry() -> None:
    assert _rooms(PACKAGE) == set(LAYERS)


def test_no_two_rooms_may_import_each_other() -> None:
    names = list(LAYERS)
    # The public names come last, and only the program in the terminal uses them.
    later = {room: [one for one in LAYERS[room].split() if names.index(one) > names.index(room)] for room in names}

    assert {room: found for room, found in later.items() if found} == {"cli": ["__init__"]}


def test_a_hook_builds_on_no_other_hook(tmp_path: Path) -> None:
    hook = "from mtprof_nb.capture.buffers.buffer import Buffer\nfrom mtprof_nb.capture.eager import runtimes"
    empty = {f"capture/{folder}/__init__": "" for folder in ("buffers", "eager", "native")}
    package = _package(tmp_path, **empty, **{"capture/native/native_hook": hook})

    assert _forbidden(package) == [
        "mtprof_nb/capture/native/native_hook.py:2: capture.native may not import capture.eager"
    ]


def test_only_the_ways_in_and_the_public_names_import_the_profiler() -> None:
    importers = {part for _, part, imported in _edges(PACKAGE) if imported == "profiler"}

    # `cell` is the code of the magics; `comparing` records two functions, `cluster` what engines run.
    assert importers <= {"magic", "cell", "cli", "cluster", "comparing", "__init__"}


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
def test_an_import_against_the_direction_is_found_however_it_is_written(tmp_path: Path, source: str) -> None:
    package = _package(tmp_path, **{"capture/session": source, "views/panel": "class Panel: ..."})

    assert len(_forbidden(package)) == 1


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
def test_an_import_in_the_direction_is_allowed(tmp_path: Path, source: str) -> None:
    package = _package(tmp_path, **{"capture/session": source, "capture/hook": "", "model/trace": "", "errors": ""})

    assert _forbidden(package) == []


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
