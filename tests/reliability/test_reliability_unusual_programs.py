"""Programs that a profiler seldom meets: the same result as without it, a whole trace, and every output."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recording import EVERY_FLAG, HOOKS
from reliability_cases import names

import mtprof_nb as mtp
from mtprof_nb.model.trace import OP

pytest.importorskip("torch")
from unusual_programs import PROGRAMS


def assert_every_output_works(prof: mtp.profile, folder: Path) -> None:
    trace = prof.trace
    assert (trace.duration_ns >= 0).all()
    prof.export_chrome_trace(folder / "trace.json")
    exported = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert sum(event.get("cat") == "cpu_op" for event in exported) == (trace.kind == OP).sum()
    prof.export_stacks(folder / "stacks.txt")
    assert prof.key_averages().table().startswith("-")
    json.dumps([dict(event) for event in prof.events()])


@HOOKS
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unusual_program_has_the_same_result_and_a_whole_trace(program: str, hook: str, tmp_path: Path) -> None:
    run, op = PROGRAMS[program]
    plain = run()
    with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        profiled = run()
    assert profiled == plain
    assert set(op.split("|")) & set(names(prof)), set(names(prof))
    assert_every_output_works(prof, tmp_path)


@HOOKS
def test_a_program_without_ops_has_an_empty_trace_and_every_output(
    hook: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mtp.profile(hook=hook, **EVERY_FLAG) as prof:
        pass
    assert not [event for event in prof.events() if event.kind in ("op", "scope")]
    prof.export_chrome_trace(tmp_path / "trace.json")
    json.loads((tmp_path / "trace.json").read_text())
    prof.export_stacks(tmp_path / "stacks.txt")
    prof.key_averages().table()
    prof.show()
    assert capsys.readouterr().out


@pytest.mark.soak
@HOOKS
def test_distinct_names_by_the_ten_thousand_are_all_kept(
    hook: str, tmp_path: Path, rounds: Callable[[int, int], int]
) -> None:
    count = rounds(5_000, 100_000)
    with mtp.profile(hook=hook) as prof:
        for number in range(count):
            with mtp.record_function(f"scope {number}"):
                pass
    assert names(prof) == [f"scope {number}" for number in range(count)]
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert len(prof.key_averages()) == count
    assert "scope " in prof.key_averages().table(row_limit=5)


@HOOKS
def test_the_depth_of_recursion_that_a_program_may_use_is_hardly_less(hook: str) -> None:
    limit = sys.getrecursionlimit()

    def depth(levels: int) -> int:
        try:
            return depth(levels + 1)
        except RecursionError:
            return levels

    with mtp.profile(hook=hook, **EVERY_FLAG):
        recorded = depth(0)
    assert limit - recorded < 100 + (limit - depth(0))
