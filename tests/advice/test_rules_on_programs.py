"""Each rule fires in a real program with the flaw that it looks for, and not in one that looks alike."""

from pathlib import Path
from typing import Any

import pytest
from flawless_programs import FLAWLESS
from more_programs import FLAWED_TOO, FLAWLESS_TOO
from programs import FLAWED, Program
from steady_times import steady

import mtprof_nb as mtp
from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import Finding

pytest.importorskip("torch")


def _recorded(program: Program, folder: Path) -> mtp.profile:
    """A recording of the program, whose second part is a file of its own."""
    names: dict[str, Any] = {}
    exec(program.before, names)
    file = folder / "recorded.py"
    file.write_text(program.recorded)
    code = compile(program.recorded, str(file), "exec")
    with mtp.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        exec(code, names)
    return prof


def _findings(program: Program, folder: Path) -> dict[str, Finding]:
    return {finding.rule: finding for finding in advise(steady(_recorded(program, folder).trace))}


def _assert_found(program: Program, rule: str, line: int | None, folder: Path) -> None:
    found = _findings(program, folder)

    assert rule in found
    assert found[rule].where == (f"recorded.py:{line}" if line else "")
    assert found[rule].share >= 0.05


@pytest.mark.parametrize("rule", FLAWED)
def test_a_rule_names_the_line_of_a_flaw(rule: str, tmp_path: Path) -> None:
    program, line = FLAWED[rule]

    _assert_found(program, rule, line, tmp_path)


@pytest.mark.parametrize("flaw", FLAWED_TOO)
def test_a_rule_names_the_line_of_a_further_flaw(flaw: str, tmp_path: Path) -> None:
    _assert_found(*FLAWED_TOO[flaw], tmp_path)


@pytest.mark.parametrize("rule", FLAWLESS)
def test_a_rule_is_silent_where_a_program_only_looks_alike(rule: str, tmp_path: Path) -> None:
    assert rule not in _findings(FLAWLESS[rule], tmp_path)


@pytest.mark.parametrize("name", FLAWLESS_TOO)
def test_a_rule_is_silent_in_further_programs_without_a_flaw(name: str, tmp_path: Path) -> None:
    program, rule = FLAWLESS_TOO[name]

    assert rule not in _findings(program, tmp_path)


def test_a_score_that_holds_the_graph_of_an_evaluation_is_found(tmp_path: Path) -> None:
    summed = "model.eval()\nscore = 0\nfor _ in range(3):\n    score = score + model(x).mean()\n"
    kept = FLAWED["missing_no_grad"][0]._replace(recorded=summed)

    finding = _findings(kept, tmp_path)["missing_no_grad"]

    assert (finding.where, finding.certainty) == ("recorded.py:4", "likely")
    assert finding.title == "Gradients are recorded here for no backward pass"
    assert finding.evidence.endswith("at the peak, some of it held to the end.")


def test_a_saved_recording_has_the_same_findings(tmp_path: Path) -> None:
    prof = _recorded(FLAWED["float64_in_float32"][0], tmp_path)
    prof.save(tmp_path / "run.mtp")

    assert [str(finding) for finding in mtp.load(tmp_path / "run.mtp").advice()] == list(map(str, prof.advice()))
