"""Findings in recordings that nobody here made. A rule that is wrong here is not ready."""

import re
from pathlib import Path

import pytest
from real_traces import NAMES, trace_path

import mtprof_nb as mtp
from mtprof_nb.advice import advising
from mtprof_nb.advice.rule_registry import RULES, RULES_OF_PROCESSES

DOCS = Path(__file__).parents[2] / "docs" / "api" / "advice.md"
#: Findings that look right to a reader of these files. Busy, idle and exposed times are checked against other tools in
#: `tests/test_real_devices.py`; that a change would make these programs faster cannot be checked without their devices.
#: `rtx2080ti_resnet` spends half of its time in the `next` of its DataLoader, and copies batches from pageable memory;
#: `a100_before` fetches sizes from the device twelve times a step.
RIGHT = {
    "a100_before": ["exposed_communication", "waits_for_values"],
    "a100_ddp_rank0": ["device_waits_for_host", "exposed_communication"],
    "ascend_rank0": ["exposed_communication"],
    "ascend_rank1": ["exposed_communication"],
    "h100_bert_small": ["device_waits_for_host"],
    "mi300_bert_small": ["device_waits_for_host"],
    "ranks_rank0": ["exposed_communication"],
    "ranks_rank1": ["exposed_communication"],
    "rtx2080ti_resnet": ["waits_for_input", "pageable_copies"],
    "v100_after": ["exposed_communication"],
}


@pytest.mark.parametrize("name", NAMES)
def test_real_recordings_get_the_findings_that_are_right(name: str) -> None:
    assert [finding.rule for finding in mtp.load(trace_path(name)).advice()] == RIGHT.get(name, [])


def test_the_documentation_lists_all_rules() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCS.read_text(), re.MULTILINE) == [*RULES, *RULES_OF_PROCESSES]


def test_every_module_of_a_rule_is_listed() -> None:
    rules = Path(advising.__file__).parent / "rules"
    files = [path.relative_to(rules).with_suffix("") for path in rules.rglob("[a-z]*.py")]

    assert sorted(advising.RULE_MODULES) == sorted(".".join(file.parts) for file in files)
