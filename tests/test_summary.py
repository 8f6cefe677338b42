"""The last words of `make test`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "summary.py"
UNIT = """<testsuites><testsuite>
  <testcase classname="tests.test_a" name="test_one"/>
  <testcase classname="tests.test_a" name="test_two"><failure message="no"/></testcase>
  <testcase classname="tests.test_b" name="test_three"><skipped type="pytest.skip" message="no npu here"/></testcase>
  <testcase classname="tests.test_b" name="test_four"><skipped type="pytest.skip" message="no npu here"/></testcase>
  <testcase classname="tests.test_b" name="test_five"><skipped type="pytest.xfail" message="known"/></testcase>
</testsuite></testsuites>"""
BROWSER = """<testsuites><testsuite><testcase classname="tests.browser" name="test_it"/></testsuite></testsuites>"""


def _report(folder: Path, order: int, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text)
    os.utime(path, (order, order))


def _summary(folder: Path, *failed: str) -> tuple[int, list[str]]:
    ran = subprocess.run([sys.executable, SCRIPT, folder, *failed], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.strip().splitlines()


def test_the_summary_names_what_was_skipped_and_why_and_fails_with_a_failed_stage(tmp_path: Path) -> None:
    _report(tmp_path, 1, "unit.xml", UNIT)
    _report(tmp_path, 2, "browser.xml", BROWSER)
    _report(tmp_path, 3, "notebooks.absent", "no notebooks/*.ipynb\n")

    code, lines = _summary(tmp_path, "unit")

    assert code == 1
    assert lines == [
        "== summary",
        "unit           2 ran, 1 failed, 3 skipped",
        "browser        1 ran, 0 failed, 0 skipped",
        "",
        "skipped, and why:",
        "  notebooks: the whole stage: no notebooks/*.ipynb",
        "  unit: no npu here [tests.test_b::test_three and 1 more]",
        "  unit: expected to fail: known [tests.test_b::test_five]",
        "",
        "FAILED: unit",
    ]


def test_the_summary_of_a_clean_run_says_that_nothing_was_skipped(tmp_path: Path) -> None:
    _report(tmp_path, 1, "browser.xml", BROWSER)

    code, lines = _summary(tmp_path)

    assert code == 0
    assert lines[-3:] == ["nothing was skipped", "", "all stages passed"]


def test_the_stage_of_the_javascript_says_which_program_is_missing(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make here")
    programs, reports = tmp_path / "bin", tmp_path / "reports"
    programs.mkdir()
    for program in ("mkdir", "tee", "sed", "npm"):
        (programs / program).symlink_to(shutil.which(program) or "/bin/true")

    ran = subprocess.run(
        [make, "web", f"REPORTS={reports}"],
        cwd=ROOT,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "no node\n", "")
    assert _summary(reports)[1][2:4] == ["skipped, and why:", "  web: the whole stage: no node"]
