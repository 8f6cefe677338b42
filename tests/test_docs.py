"""The documentation names what there is: pages, objects, parameters, flags, hooks and methods."""

import ast
import inspect
import re
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_import_directions import LAYERS

import mtprof_nb
from mtprof_nb.capture.registry import HOOK_KINDS
from mtprof_nb.cell.flags import PARSER
from mtprof_nb.model.schema import schema_of
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Results
from mtprof_nb.tables.averages import FunctionEventAvg
from mtprof_nb.tables.event import Event

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
DOCUMENTED = re.compile(r"^::: (\S+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]*)+|\w+\.(?:py|md|yml|toml)")
#: Public names that IPython calls, and users do not.
CALLED_BY_IPYTHON = {"load_ipython_extension", "unload_ipython_extension"}
#: Members of a recording that exist for torch alone, and one that the panel sets.
FOR_TORCH = {"wait_for_exports", "take_pending_cuspy_export", "mem_tl", "panel_follows"}


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _pages_of(nav: Any) -> list[str]:
    """The paths of a `nav`, however it is nested."""
    if isinstance(nav, str):
        return [nav]
    return [page for entry in (nav.values() if isinstance(nav, dict) else nav) for page in _pages_of(entry)]


def _documented() -> list[str]:
    return [name for page in PAGES for name in DOCUMENTED.findall(_text(page))]


def _table(page: Path, header: str) -> list[list[str]]:
    """The rows of the table with this first column."""
    lines = iter(_text(page).splitlines())
    next(line for line in lines if line.startswith(f"| {header} |"))
    rows = [line.strip("|").split("|") for line in takewhile(lambda line: line.startswith("|"), lines)]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def _spelled(option: Any) -> str:
    *short, long = option.spellings
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join([*(f"`{flag}`" for flag in short), f"`{long}{value}`"])


def _object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def test_the_navigation_has_every_page_once() -> None:
    assert sorted(_pages_of(SITE["nav"])) == [page.relative_to(DOCS).as_posix() for page in PAGES]


@pytest.mark.parametrize("name", _documented())
def test_a_documented_object_exists_and_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(_object(name))


def test_no_object_is_documented_twice() -> None:
    assert len(_documented()) == len(set(_documented()))


def test_every_public_name_is_documented() -> None:
    documented = {id(_object(name)) for name in _documented()}
    public = {name for name in mtprof_nb.__all__ if id(getattr(mtprof_nb, name)) not in documented}

    assert public == CALLED_BY_IPYTHON


def test_the_flags_of_the_page_are_those_of_the_parser_with_their_help() -> None:
    flags = _table(DOCS / "magics.md", "flag")

    assert flags == [[_spelled(option), option.help] for option in PARSER.options]


def test_the_hooks_of_the_page_are_those_of_the_package() -> None:
    assert [row[0].strip("`") for row in _table(DOCS / "hooks.md", "hook")] == list(HOOK_KINDS)


def test_the_page_of_results_has_every_method_of_a_recording() -> None:
    cells = [row[0] for row in _table(DOCS / "api" / "results.md", "method or attribute")]
    listed = {span.partition("(")[0] for cell in cells for span in CODE_SPAN.findall(cell)}

    assert listed == {name for name in vars(Results) if not name.startswith("_")} - FOR_TORCH


def test_the_parameters_of_profile_are_all_described_with_their_defaults() -> None:
    section = _text(DOCS / "api" / "profile.md").split("\n## ")[1]
    rows = [re.split(r" *\| *", line.strip("| ")) for line in section.splitlines() if line.startswith("| `")]
    described = {row[0].strip("`"): row[1].strip("`") for row in rows}
    accepted = inspect.signature(mtprof_nb.profile).parameters
    defaults = {name: parameter.default for name, parameter in accepted.items()}

    assert list(described) == list(defaults)
    literal = {name: ast.literal_eval(text) for name, text in described.items() if defaults[name] is not None}
    assert literal == {name: default for name, default in defaults.items() if default is not None}


def test_every_cost_and_fact_of_an_event_and_of_a_row_is_described() -> None:
    # The reference is made from the source: it lacks what a function makes, and what only `__init__` sets.
    properties = {name: value.fget for name, value in vars(Event).items() if isinstance(value, property)}
    made = {name for name, read in properties.items() if read.__qualname__ != f"Event.{name}"}
    of_row = {name for name in vars(FunctionEventAvg()) if not name.startswith("_")}

    assert made - set(CODE_SPAN.findall(_text(DOCS / "api" / "events.md"))) == set()
    assert of_row - set(CODE_SPAN.findall(_text(DOCS / "api" / "averages.md"))) == set()


def test_every_field_of_a_trace_has_a_comment() -> None:
    fields = [line for line in inspect.getsource(Trace).splitlines() if re.match(r"    \w+: ", line)]
    lines = inspect.getsource(Trace).splitlines()
    uncommented = [field for field in fields if not lines[lines.index(field) - 1].startswith("    #: ")]

    assert len(fields) > len(schema_of(Trace).columns)
    assert uncommented == []


@pytest.mark.parametrize("page", [page.relative_to(DOCS).as_posix() for page in PAGES])
def test_a_page_points_at_nothing_that_is_missing(page: str) -> None:
    path = DOCS / page
    targets = [target.partition("#")[0] for target in LINK.findall(_text(path))]

    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_path_in_the_maps_of_the_code_exists(page: str) -> None:
    # A span of code with a slash and no placeholder, or a file's name; `make` creates what lies in build/.
    spans = [span for span in CODE_SPAN.findall(_text(ROOT / page)) if PATH.fullmatch(span)]
    paths = [path for path in spans if not path.startswith("build/")]

    assert len(paths) > 20
    assert [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "mtprof_nb"))] == []


def test_the_layout_has_every_room_in_the_order_of_the_layers() -> None:
    paths = [span for row in _table(DOCS / "architecture.md", "path") for span in CODE_SPAN.findall(row[0])]
    rooms = [path.partition("/")[0].removesuffix(".py") for path in paths]

    assert list(dict.fromkeys(rooms)) == list(LAYERS)


def _named_tests() -> list[tuple[str, str]]:
    """(file, part of a test's name) for each test that the page of guarantees names; "" for the whole file."""
    rows = [line.split(" | ") for line in _text(DOCS / "reliability.md").splitlines() if line.startswith("| ")]
    cells = [part for row in rows if "`" in row[1] for part in row[1].split("; ")]
    spans = [CODE_SPAN.findall(cell) for cell in cells]
    files = [name if "/" in name else f"tests/reliability/test_reliability_{name}.py" for name, *_ in spans]
    return [(file, found[1].strip("…") if len(found) > 1 else "") for file, found in zip(files, spans, strict=True)]


@pytest.mark.parametrize(("file", "part"), _named_tests())
def test_a_guarantee_names_a_test_that_exists(file: str, part: str) -> None:
    assert re.search(rf"^def test_\w*{part}", _text(ROOT / file), re.MULTILINE)
