"""The README keeps its word: its tables are those of the code, and what it points at is there."""

import re
from pathlib import Path

import pytest

from mtprof_nb.capture.registry import HOOK_KINDS
from mtprof_nb.cell.flags import PARSER

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
SMALL_BYTES = 200_000


def _table(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def _spelled(option: object) -> str:
    *short, long = option.spellings
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join([*(f"`{flag}`" for flag in short), f"`{long}{value}`"])


def test_the_flags_of_the_readme_are_those_of_the_parser_with_their_help() -> None:
    assert _table("Flags") == [[_spelled(option), option.help] for option in PARSER.options]


def test_the_hooks_of_the_readme_are_those_of_the_package() -> None:
    assert [row[0].strip("`") for row in _table("Hooks")] == list(HOOK_KINDS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_points_at_nothing_that_is_missing(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    assert [target for target in LINK.findall(text) if not (ROOT / target.partition("#")[0]).exists()] == []


def test_the_two_commands_stand_on_the_first_screen_and_in_the_makefile() -> None:
    first_screen = "\n".join(README.splitlines()[:20])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    for target in ("demo", "test"):
        assert f"make {target}" in first_screen
        assert f"\n{target}: " in makefile


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs").glob("*.png")}

    assert sizes
    assert {name: size for name, size in sizes.items() if size > SMALL_BYTES} == {}
