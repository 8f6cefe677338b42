"""Cells with one flaw each, in a real kernel: the first finding names it, and its line."""

import pytest
from conftest import Kernel
from planted_flaws import PLANTED, SOUND, Program
from steady_times import steady

import mtprof_nb as mtp
from mtprof_nb.advice.advising import advise


def _findings(kernel: Kernel, program: Program) -> list[tuple[str, int | None]]:
    """The findings of a recording that the kernel made, with steady times."""
    assert kernel.run(program.before).status == "ok"
    ran = kernel.run("%%mtprofile -q -o prof\n" + program.recorded)
    assert ran.status == "ok", ran.traceback
    assert kernel.run("prof.save('planted.mtp')").status == "ok"
    found = advise(steady(mtp.load(kernel.folder / "cwd" / "planted.mtp").trace))
    # Whether threads are too few depends on what else runs on the machine of the test.
    return [(one.rule, one.line.line if one.line else None) for one in found if one.rule != "too_few_threads"]


@pytest.mark.parametrize("rule", PLANTED)
def test_the_first_finding_is_the_planted_flaw_on_its_line(kernel: Kernel, rule: str) -> None:
    text = "%%mtprofile\n" + PLANTED[rule].recorded
    (line,) = (number for number, one in enumerate(text.splitlines(), 1) if one.endswith("# HERE"))

    assert _findings(kernel, PLANTED[rule])[:1] == [(rule, line)]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_program_gets_no_finding(kernel: Kernel, name: str) -> None:
    assert _findings(kernel, SOUND[name]) == []
