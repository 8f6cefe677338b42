"""Imports follow the direction of the data, and importing the package is cheap."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mtprof_nb"

BASE = {"errors", "model"}
#: Modules of `capture` that its own folders build on.
OF_CAPTURE = {
    f"capture.{name}"
    for name in ("activities", "clock", "distributed", "hook", "interrupts", "registry", "torch_scope")
}
#: The imports of a hook's folder. Every folder of `capture` is a hook's, but for these three.
HOOKS = {*BASE, "building", *OF_CAPTURE, "capture.machine", "capture.shared"}
NO_HOOKS = {"capture.machine", "capture.shared", "capture.marks"}
ANALYSIS = {
    "analysis",
    "analysis.causes",
    "analysis.devices",
    "analysis.functions",
    "analysis.lines",
    "analysis.memory",
    "analysis.ranks",
    "analysis.steps",
}
ANSWERS = {*BASE, *ANALYSIS, "advice", "results"}
VIEWS = {f"views.{name}" for name in ("charts", "comparison", "page", "panel", "static", "tables")}
OUTPUTS = {"export", "comparison", "views", *VIEWS}
CAPTURE = {"capture", *OF_CAPTURE, "capture.marks", "capture.native", "capture.machine"}
#: Imports against the direction that happen only in a call: results write and show themselves.
ON_DEMAND = {
    # The registry names the runtimes, whose own files are nobody's code.
    ("model", "capture.registry"),
    # A finding is checked by running the program before and after its fix.
    ("advice", "comparing"),
    ("results", "export"),
    ("results", "views.charts"),
    ("results", "views.panel"),
    ("results", "views.page"),
    ("comparison", "views.comparison"),
    ("results", "views.static"),
    ("comparison", "views.page"),
    ("comparison", "views.panel"),
}
HEAVY = ("ipyparallel", "torch", "IPython", "ipywidgets", "anywidget", "plotly", "pandas")


def _parts(package: Path) -> set[str]:
    """The folders of the package, and the modules beside them, by their names below the package."""
    modules = {path.stem for path in package.glob("*.py")}
    folders = {path.parent.relative_to(package) for path in package.rglob("*/__init__.py")} - {Path()}
    return modules | {".".join(folder.parts) for folder in folders}


def _may_import(package: Path) -> dict[str, set[str]]:
    """For each folder, and each module that has its own entry: the others that it may import."""
    hooks = {part for part in _parts(package) if part.startswith("capture.")} - NO_HOOKS
    return {
        "errors": set(),
        "model": {"errors"},
        "model.file": BASE,
        "building": BASE,
        "reading.text": BASE,
        # Exports carry facts in the form that they have in a saved file.
        "reading.collected": {*BASE, "model.file", "reading.text"},
        "reading.assembly": {*BASE, "model.file", "building", "reading.text", "reading.collected"},
        "reading": {*BASE, "building", "reading.text", "reading.collected", "reading.assembly"},
        **{module: {*BASE, *OF_CAPTURE} for module in OF_CAPTURE},
        # It names the hooks, and imports one when it is made.
        "capture.registry": {*BASE, "capture.shared", *hooks},
        "capture.machine": BASE,
        "capture.shared": {*BASE, "building", *OF_CAPTURE},
        **dict.fromkeys(hooks, HOOKS),
        # It follows threads that Kineto does not.
        "capture.dispatch": {*HOOKS, "capture.kineto"},
        "capture.marks": HOOKS,
        "capture": {*HOOKS, *hooks},
        **{part: {*BASE, *ANALYSIS} for part in ANALYSIS},
        "advice": {*BASE, *ANALYSIS, "advice.rules", "advice.rules.devices"},
        # A rule registers itself.
        "advice.rules": {*BASE, *ANALYSIS, "advice"},
        "advice.rules.devices": {*BASE, *ANALYSIS, "advice"},
        "results": ANSWERS,
        "comparison": ANSWERS,
        "export": {*ANSWERS, "model.file"},
        "views": {*ANSWERS, "comparison"},
        "views.comparison": {*ANSWERS, "comparison", "views", "views.charts", "views.static"},
        "views.tables": {*ANSWERS, "views"},
        "views.charts": {*ANSWERS, "views"},
        "views.static": {*ANSWERS, "views", "views.tables", "views.charts"},
        "views.panel": {*ANSWERS, *OUTPUTS},
        "views.page": {*ANSWERS, *OUTPUTS},
        "loading": {*ANSWERS, "model.file", "reading", "views"},
        "comparing": {*ANSWERS, *OUTPUTS, "loading", "profiler"},
        "profiler": {*ANSWERS, *OUTPUTS, *CAPTURE},
        "cell": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler", "loading", "comparing"},
        "cluster": {*ANSWERS, *OUTPUTS, *CAPTURE, "model.file", "reading", "loading", "profiler", "cell"},
        "magic": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler", "cell", "cluster", "__init__"},
        "__init__": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler", "loading", "comparing", "cell", "cluster", "magic"},
        "cli": {*ANSWERS, *OUTPUTS, *CAPTURE, "profiler", "loading", "comparing", "cell", "__init__"},
        "__main__": {"cli"},
    }


def _part_of(module: str, parts: Iterable[str]) -> str:
    """The innermost one of `parts` that holds a module, by its name below the package."""
    names = module.split(".")
    prefixes = (".".join(names[:length]) for length in range(len(names), 0, -1))
    return next((prefix for prefix in prefixes if prefix in parts), "__init__")


def _imported(
    tree: ast.AST, module: str, is_package: bool, parts: Iterable[str]
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Node and dotted name of each import in `tree`, and of each string that names something in one of `parts`."""
    named = re.compile(rf"mtprof_nb\.({'|'.join(map(re.escape, parts))})(\.\w+)*(:\w+)?")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*above, *filter(None, [node.module])])
            yield from ((node, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and named.fullmatch(node.value):
            # import_module("…"), and tables of names that are imported when first used.
            yield node, node.value.replace(":", ".")


def _is_put_off(node: ast.AST) -> bool:
    """Whether imports inside `node` wait for a call, or are for types alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _edges(package: Path) -> Iterator[tuple[str, str, str]]:
    """(file and line, importing part, imported part) for every import of one part by another."""
    parts = _may_import(package)
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(name for name in names if name != "__init__")
        part = _part_of(module.partition(".")[2] or "__init__", parts)
        tree = ast.parse(path.read_text())
        on_demand = {id(node) for scope in ast.walk(tree) if _is_put_off(scope) for node in ast.walk(scope)}
        for node, target in _imported(tree, module, path.stem == "__init__", parts):
            root, _, inner = target.partition(".")
            imported = _part_of(inner, parts)
            is_on_demand = id(node) in on_demand and (part, imported) in ON_DEMAND
            if root == package.name and imported != part and not is_on_demand:
                yield f"{path.relative_to(package.parent)}:{node.lineno}", part, imported


def _forbidden(package: Path) -> list[str]:
    may_import = _may_import(package)
    return [
        f"{where}: {part} may not import {imported}"
        for where, part, imported in _edges(package)
        if imported not in may_import.get(part, ())
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
    assert _parts(PACKAGE) - set(_may_import(PACKAGE)) == set()


def test_the_folder_of_a_new_hook_needs_no_entry(tmp_path: Path) -> None:
    hook = "from mtprof_nb.capture.shared.buffer import Buffer\nfrom mtprof_nb.capture.eager import runtimes"
    kind = "HookKind('jax', 'jax', 'mtprof_nb.capture.jax.jax_hook:JaxHook', event_ns=1_000)"
    empty = {f"capture/{folder}/__init__": "" for folder in ("shared", "eager", "jax")}
    package = _package(tmp_path, **empty, **{"capture/jax/jax_hook": hook, "capture/registry": kind})

    assert _parts(package) - set(_may_import(package)) == set()
    # It builds on `capture/shared`, and not on another hook.
    assert _forbidden(package) == ["mtprof_nb/capture/jax/jax_hook.py:2: capture.jax may not import capture.eager"]


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
