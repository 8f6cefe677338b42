"""Rules that a reader of the package may rely on, held by reading every file."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import mtprof_nb

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mtprof_nb"
TEXT = {".py", ".js", ".ts", ".css", ".md", ".toml", ".yml", ".cfg", ".ipynb", ".html"}
CODE = {".py", ".js", ".ts", ".css", ".h", ".cpp"}
FOLDERS = ("mtprof_nb", "tests", "scripts", "benchmarks", "notebooks", "docs")

LONGEST_FILE = 400
FULLEST_FOLDER = 25
LONGEST_LINE = 100
#: Lines of the package that are longer, by language: lower the numbers with the code, never raise them.
LONG_LINES = {".py": 3_133, ".js": 347, ".ts": 23, ".css": 7, ".h": 191, ".cpp": 29}
#: Files held to less than the rest.
SHORTER = {"magic.py": 100}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "data", "info", "misc", "common"}
#: Modules that run code found in data, or open a port.
DANGEROUS_MODULES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve"),
    *("socket", "socketserver", "http.server", "wsgiref", "xmlrpc", "aiohttp", "tornado"),
}
DANGEROUS_CALLS = {"eval", "exec", "__import__"}
#: File of the package: what it uses of these, and why it must.
ALLOWED = {
    "capture/marks/mark_costs.py": (
        {"exec"},
        "two constants of the file itself, to time the marks in them; no text from outside",
    ),
    "cli/script.py": ({"exec"}, "`mtprof run` runs the script that the user names"),
    "cell/statement.py": ({"exec", "eval"}, "a line magic runs the statement that the user typed behind it"),
}

# In pieces, so that this file keeps its own rule.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/" + r"(work|tmp|root)/")
#: A docstring names its subject first: "Lines of …", "Return …".
NO_SUBJECT = re.compile(r'^\s*"""(What|The same|Those|It)\b')
EMOJI = re.compile("[\U0001f000-\U0001faff\ufe0f\u2705\u274c\u274e\u2728\u2b50\u26a1\u2753\u2757]")
LIVE_CODE_IN_JS = re.compile(r"\beval\s*\(|\bnew\s+Function\s*\(|\bimportScripts\s*\(|\bWebSocket\s*\(|\bfetch\s*\(")
URL_IN_JS = re.compile(r"https?://(?!www\.w3\.org/)")


def _sources(*suffixes: str) -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in suffixes)


def _texts() -> list[Path]:
    top = [path for path in ROOT.iterdir() if path.suffix in TEXT or path.name == "Makefile"]
    inner = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in TEXT]
    return sorted([*top, *inner, ROOT / ".ci" / "run"])


def _found(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := pattern.search(line))
    ]


def _dangers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of whatever in `tree` could run code found in data, or open a port."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in DANGEROUS_CALLS:
                yield node.lineno, node.func.id
            if any(keyword.arg == "allow_pickle" for keyword in node.keywords):
                yield node.lineno, "allow_pickle"
        for name in names:
            if name in DANGEROUS_MODULES or name.partition(".")[0] in DANGEROUS_MODULES:
                yield node.lineno, name


def test_no_file_of_source_text_is_too_long() -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in CODE]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources}

    assert {
        path.name: length for path, length in lengths.items() if length > SHORTER.get(path.name, LONGEST_FILE)
    } == {}


def test_lines_that_are_too_long_do_not_become_more() -> None:
    counts = {
        suffix: sum(
            len(line) > LONGEST_LINE
            for path in _sources(suffix)
            for line in path.read_text(encoding="utf-8").splitlines()
        )
        for suffix in LONG_LINES
    }

    assert {suffix: count for suffix, count in counts.items() if count > LONG_LINES[suffix]} == {}


def test_no_folder_of_the_package_is_too_full() -> None:
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in _sources(*TEXT, *CODE))

    assert {folder: count for folder, count in counts.items() if count > FULLEST_FOLDER} == {}


def test_a_file_name_of_the_package_stands_once() -> None:
    counts = Counter(path.name for path in _sources(*TEXT) if path.name != "__init__.py")

    assert [name for name, count in counts.items() if count > 1] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [path.name for path in _sources(".py", ".js") if path.stem.strip("_") in VAGUE_NAMES] == []


def test_the_package_neither_runs_code_from_data_nor_opens_a_port() -> None:
    used = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in _sources(".py")
        if (names := {name for _, name in _dangers(ast.parse(path.read_text(encoding="utf-8")))})
    }

    assert used == {file: names for file, (names, _) in ALLOWED.items()}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as safe",
        "from pickle import loads",
        "from http import server",
        "from http.server import HTTPServer",
        "def f():\n    import socket",
        "eval(text)",
        "exec(text, {})",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_what_runs_code_from_data_or_opens_a_port_is_found(source: str) -> None:
    assert list(_dangers(ast.parse(source)))


def test_model_eval_is_not_taken_for_the_builtin() -> None:
    assert list(_dangers(ast.parse("model.eval()\nimport html\nfrom http import HTTPStatus"))) == []


def test_the_javascript_runs_no_text_as_code_and_asks_no_server() -> None:
    scripts = _sources(".js", ".ts", ".css")

    assert _found(LIVE_CODE_IN_JS, scripts) + _found(URL_IN_JS, scripts) == []


def test_nothing_is_left_unfinished() -> None:
    assert _found(UNFINISHED, _texts()) == []


def test_every_docstring_names_its_subject_first() -> None:
    assert _found(NO_SUBJECT, [path for path in _texts() if path.suffix == ".py"]) == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    assert _found(MACHINE_PATH, _texts()) == []


def test_no_file_holds_an_emoji() -> None:
    assert _found(EMOJI, _texts()) == []


def test_the_package_knows_the_version_that_the_project_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert mtprof_nb.__version__ == declared
