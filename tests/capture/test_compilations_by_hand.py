"""Compilations among hand-made events: the compiler's ops count nowhere, and sums are exact."""

from types import SimpleNamespace
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.summary import summary
from mtprof_nb.building.compiling import TimedCompilation, added, with_compiled_steps
from mtprof_nb.capture.torch_private.compiler_records import described, described_breaks
from mtprof_nb.model.compilations import Compilation, GraphBreak
from mtprof_nb.model.file import recording_reader, recording_writer
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import PHASES, Frame, Trace, Track

BREAK = GraphBreak("train.py", 5, "print")
FORWARD = Compilation("0/0", "f", "train.py", 3, dynamo_ns=30, aot_ns=20, breaks=(BREAK,))
BACKWARD = FORWARD._replace(cause="first backward", breaks=())


def compiling(start: int, end: int, facts: Compilation = FORWARD) -> TimedCompilation:
    return TimedCompilation(start, end, 1, [Frame("train.py", 9, "<module>")], facts)


def names(trace: Trace) -> list[str]:
    return [trace.names[number] for number in trace.name]


def test_what_runs_inside_a_compilation_on_its_thread_is_left_out() -> None:
    trace = make_trace(
        [
            event("mm", 0, 10),
            event("mm", 20, 30, flops=100),
            event("mm", 25, 28),
            event("add", 22, 24, thread=2),
            event("mm", 50, 60),
        ]
    )

    made = added(trace, [compiling(15, 45)])

    assert names(made) == ["mm", "torch.compile: f", "add", "mm"]
    assert [PHASES[phase] for phase in made.phase] == ["forward", "compiling", "forward", "forward"]
    assert made.compilation is not None
    assert made.compilation.tolist() == [-1, 0, -1, -1]
    assert made.compilations == (FORWARD,)


def test_compiling_inside_an_op_is_taken_out_of_its_self_time() -> None:
    outer = event("CompiledFunctionBackward", 100, 200, phase="backward")
    trace = make_trace([outer, event("mm", 120, 130)])

    made = added(trace, [compiling(110, 180, BACKWARD)])

    phases_ns = summary(made).phases_ns
    assert phases_ns == {"forward": 0, "backward": 30, "optimizer": 0, "other": 0, "compiling": 70}
    assert summary(made).in_ops_ns == 100


def test_parts_add_up_to_the_recorded_time() -> None:
    rows = [event("mm", 10, 20), event("mm", 40, 47)]
    trace = make_trace(rows, windows=((0, 100),), began_ns=0, ended_ns=100)

    of = summary(added(trace, [compiling(30, 39), compiling(60, 95, BACKWARD)]))

    assert of.phases_ns["compiling"] == 44
    assert sum(of.phases_ns.values()) + (of.outside_ns or 0) == of.wall_ns == 100


def test_a_compilation_is_no_op_that_ran() -> None:
    trace = make_trace([event("mm", 10, 20)])

    assert summary(added(trace, [compiling(30, 39)])).ops == 1


def test_the_compilers_own_threads_and_checks_of_a_first_run_count_nowhere() -> None:
    trace = make_trace(
        [
            event("compile_file", 12, 38, thread=2, phase="other"),
            event("compile_file (dynamo_timed)", 13, 37, thread=2, phase="other"),
            event("Torch-Compiled Region: 0/0", 50, 90),
            event("addmm", 55, 80),
            event("PythonDispatchMode", 56, 79),
            event("addmm", 60, 75),
        ]
    )

    made = added(trace, [compiling(10, 40)])

    assert names(made) == ["torch.compile: f", "Torch-Compiled Region: 0/0", "addmm"]
    assert made.duration_ns.tolist() == [30, 40, 15]


def test_a_check_outside_compiled_code_is_the_users() -> None:
    mode = event("PythonDispatchMode", 56, 79)
    trace = make_trace([event("addmm", 55, 80), mode, event("addmm", 60, 75)])

    assert len(added(trace, [compiling(10, 40)])) == 4


def test_memory_that_the_compiler_takes_is_of_the_compilation() -> None:
    rows = [event("mm", 0, 10), event("mm", 20, 30)]
    thread = Track(1, "thread 1")
    records = [
        {"time_ns": 5, "nbytes": 64, "event": 0, "track": thread},
        {"time_ns": 25, "nbytes": 32, "event": 1, "track": thread},
        {"time_ns": 50, "nbytes": 16, "event": -1, "track": thread},
    ]

    made = added(make_trace(rows, records), [compiling(15, 45)])

    assert made.allocations is not None
    assert made.allocations.event.tolist() == [0, 1, -1]
    assert names(made) == ["mm", "torch.compile: f"]


def test_without_a_compilation_a_trace_stays_as_it_is() -> None:
    trace = make_trace([event("mm", 0, 10)])

    assert added(trace, []) is trace


def test_a_compiled_step_of_an_optimizer_has_that_phase() -> None:
    trace = make_trace(
        [
            event("Torch-Compiled Region: 6/0", 0, 10, phase="other"),
            event("add", 2, 4, phase="other"),
            event("Torch-Compiled Region: 7/0", 20, 30, phase="forward"),
        ]
    )

    made = with_compiled_steps(trace, {"6/0": "/lib/torch/optim/adamw.py", "7/0": "train.py"})

    assert [PHASES[phase] for phase in made.phase] == ["optimizer", "optimizer", "forward"]


def test_recordings_keep_compilations_merged_and_in_a_file(tmp_path: Any) -> None:
    one = added(make_trace([event("mm", 0, 10)]), [compiling(20, 30)])
    other = added(make_trace([event("mm", 100, 110)]), [compiling(120, 140, BACKWARD)])
    both = merge([one, other])
    with (tmp_path / "both.mtp").open("wb") as file:
        recording_writer.write(both, file)

    kept = recording_reader.read(tmp_path / "both.mtp")

    assert kept.compilation is not None
    assert kept.compilation.tolist() == [-1, 0, -1, 1]
    assert kept.compilations == (FORWARD, BACKWARD)


RECORD = SimpleNamespace(
    co_name="forward",
    co_filename="train.py",
    co_firstlineno=7,
    recompile_reason="0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9\n0/1: other",
    aot_autograd_cumulative_compile_time_us=5,
    inductor_cumulative_compile_time_us=3,
    triton_compile_time_us=2,
    inductor_fx_local_cache_hit_count=1,
    inductor_fx_local_cache_miss_count=None,
)


def test_stages_add_up_to_the_time_of_the_compilation() -> None:
    one = described("DYNAMO", "0/1", 9_001, RECORD, RECORD, ())

    stages = (one.dynamo_ns, one.aot_ns, one.inductor_ns, one.build_ns)
    assert stages == (4_001, 2_000, 1_000, 2_000)
    assert (one.function, one.file, one.line) == ("forward", "train.py", 7)
    assert one.cause == "again"
    assert one.reason == "tensor 'x' size mismatch at index 0. expected 8, actual 9"
    assert (one.cache_hits, one.cache_misses) == (1, 0)


@pytest.mark.parametrize("trigger", ["DYNAMO", "LAZY_BACKWARD", "CUDAGRAPH_RECORDING"])
def test_stages_never_exceed_the_time_of_the_compilation(trigger: str) -> None:
    one = described(trigger, "0/0", 2_500, RECORD, RECORD, ())

    assert one.dynamo_ns + one.aot_ns + one.inductor_ns + one.build_ns == 2_500


def test_a_compilation_without_a_record_has_its_time_and_cause() -> None:
    one = described("LAZY_BACKWARD", "3/0", 70, None, None, ())

    assert one == Compilation("3/0", cause="first backward", aot_ns=70)


def test_equal_breaks_of_a_compilation_are_counted() -> None:
    reason = "No `print`\n  Explanation: it is unknown.\n  Hint: Avoid it.\n  Hint: Or not.\n"
    place = [SimpleNamespace(filename="a.py", lineno=1), SimpleNamespace(filename="b.py", lineno=4)]
    record = SimpleNamespace(reason=reason, user_stack=place)

    broken = GraphBreak("b.py", 4, "No `print`", "it is unknown.", "Avoid it.\nOr not.", 2)
    assert described_breaks([record, record]) == (broken,)
    assert described_breaks([SimpleNamespace()]) == (GraphBreak("", 0, ""),)
