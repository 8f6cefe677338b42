"""Cells with one flaw each, in a real kernel: the first finding names it, and its line."""

import pytest
from conftest import Kernel
from planted_flaws import PLANTED, SOUND, Program

#: Whether threads are too few depends on what else runs on the machine of the test.
FOUND = (
    "[(finding.rule, finding.line.line if finding.line else None) for finding in prof.advice()"
    " if finding.rule != 'too_few_threads']"
)


def _findings(kernel: Kernel, program: Program) -> list[tuple[str, int | None]]:
    assert kernel.run(program.before).status == "ok"
    ran = kernel.run("%%mtprofile -q -o prof\n" + program.recorded)
    assert ran.status == "ok", ran.traceback
    return kernel.value(FOUND)


@pytest.mark.parametrize("rule", PLANTED)
def test_the_first_finding_is_the_planted_flaw_on_its_line(kernel: Kernel, rule: str) -> None:
    text = "%%mtprofile\n" + PLANTED[rule].recorded
    (line,) = (number for number, one in enumerate(text.splitlines(), 1) if one.endswith("# HERE"))

    assert _findings(kernel, PLANTED[rule])[:1] == [(rule, line)]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_program_gets_no_finding(kernel: Kernel, name: str) -> None:
    assert _findings(kernel, SOUND[name]) == []
