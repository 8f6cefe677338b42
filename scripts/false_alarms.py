"""Run all rules of the advice over recordings and programs, and list what fires, to be judged by a reader.

python scripts/false_alarms.py [folder or file ...]: recordings made elsewhere. Without arguments, the programs of the
benchmarks and of the tests' unusual programs are recorded and judged.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_SUFFIXES = (".mtp", ".json", ".json.gz")
_STEPS = 200


def recordings(paths: list[str]) -> Iterator[tuple[str, Any]]:
    """Name and recording of each file, those of folders too."""
    import mtprof_nb as mtp

    for path in map(Path, paths):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.name.endswith(_SUFFIXES):
                yield file.name, mtp.load(file)


def programs() -> Iterator[tuple[str, Any]]:
    """Name and recording of each program of the benchmarks and of the tests."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import unusual_programs

    from benchmarks.programs import IN_CELL, PROGRAMS, SMALL_OPS

    for program in (*PROGRAMS, IN_CELL, SMALL_OPS):
        names = program.namespace(program.steps(_STEPS))
        yield f"benchmark {program.name}", _recorded(program.source, names)
    for name, (function, _) in unusual_programs.PROGRAMS.items():
        yield f"test {name}", _recorded("program()", {"program": function})


def _recorded(source: str, names: dict[str, Any]) -> Any:
    import mtprof_nb as mtp

    code = compile(source, "<program>", "exec")
    with (
        warnings.catch_warnings(action="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
        mtp.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof,
        contextlib.suppress(Exception),
    ):
        exec(code, names)
    return prof


def main(*paths: str) -> None:
    """Print the findings of each recording."""
    for name, recording in recordings(list(paths)) if paths else programs():
        found = recording.advice()
        print(f"{name}: {len(found) or 'nothing'}")
        for finding in found:
            print(f"    {finding.rule} {finding.where} {finding.bound}: {finding.evidence}")


if __name__ == "__main__":
    main(*sys.argv[1:])
