"""The last words of `make test`: what each stage ran, what was skipped and why, and which stage failed."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree


@dataclass
class Stage:
    """One pytest run, read from the report that it left."""

    name: str
    tests: int = 0
    failed: int = 0
    skipped: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def skipped_count(self) -> int:
        """Tests that were skipped, or failed as they were expected to."""
        return sum(map(len, self.skipped.values()))


def read(report: Path) -> Stage:
    """The stage behind one JUnit file."""
    stage = Stage(report.stem)
    for case in ElementTree.parse(report).iter("testcase"):
        stage.tests += 1
        stage.failed += case.find("failure") is not None or case.find("error") is not None
        skip = case.find("skipped")
        if skip is not None:
            reason = " ".join((skip.get("message") or "no reason given").split())
            kind = "expected to fail: " if skip.get("type") == "pytest.xfail" else ""
            test = "::".join(filter(None, [case.get("classname"), case.get("name")]))
            stage.skipped[kind + reason].append(test)
    return stage


def lines(stages: list[Stage], absent: dict[str, str], failed: list[str]) -> list[str]:
    """The summary, ready to print."""
    said = ["", "== summary"]
    for stage in stages:
        ran = stage.tests - stage.skipped_count
        said.append(f"{stage.name:<10} {ran:>5} ran, {stage.failed} failed, {stage.skipped_count} skipped")
    reasons = [(stage.name, reason, tests) for stage in stages for reason, tests in stage.skipped.items()]
    said += ["", "skipped, and why:" if reasons or absent else "nothing was skipped"]
    said += [f"  {stage}: the whole stage: {why}" for stage, why in sorted(absent.items())]
    for stage_name, reason, tests in reasons:
        more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
        said.append(f"  {stage_name}: {reason} [{tests[0]}{more}]")
    return [*said, "", f"FAILED: {' '.join(failed)}" if failed else "all stages passed"]


def main(reports: str, *failed: str) -> int:
    """Print the summary of the reports in a folder; 1 if a stage failed."""
    stages = [read(report) for report in sorted(Path(reports).glob("*.xml"), key=lambda path: path.stat().st_mtime)]
    absent = {note.stem: note.read_text().strip() for note in Path(reports).glob("*.absent")}
    print("\n".join(lines(stages, absent, list(failed))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
