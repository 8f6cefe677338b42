"""The README is short, and what it points at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
SMALL_BYTES = 200_000


def test_the_readme_is_read_in_minutes_and_begins_with_a_profiled_cell() -> None:
    before, _, _ = README.partition("```python\n%%mtprofile\n")

    assert len(README.split()) <= 1_500
    assert len(before.split()) <= 120


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
