"""Findings about input, preparation and garbage collections that samples tell, on hand-made traces."""

import json
from typing import Any

import pytest
from rows_by_hand import MS, only
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.causes.preparations import COMPILING, IMPORTING, STARTING_WORKERS, preparation_ns
from mtprof_nb.advice.causes.where_time_went import Waiting, waiting
from mtprof_nb.model.trace import Collections, Frame, Samples, SourceLine, StackInterner, Trace

CELL = Frame("cell.py", 1, "<module>")
LOADER, DYNAMO = "lib/torch/utils/data/dataloader.py", "lib/torch/_dynamo/convert_frame.py"
INDUCTOR = "lib/torch/_inductor/compile_fx.py"
LIBRARY = json.__file__
START = Frame("lib/multiprocessing/process.py", 8, "start")
ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _sampled(rows: list[Row], *stacks: list[Frame], late_ms: int = 0, **facts: Any) -> Trace:
    """A recording of 100 ms, in equal parts of which the program was in one of `stacks` after the other."""
    tree, part = StackInterner(), 100 * MS // len(stacks)
    nodes = [tree.stack(frames) for frames in stacks]
    times = [part * at + part // 2 for at in range(len(stacks))]
    samples = Samples(
        time_ns=times,
        taken_ns=[time + late_ms * MS for time in times],
        track=[0] * len(stacks),
        stack=nodes,
        is_waiting=[False] * len(stacks),
    )
    whole = {"samples": samples, "stacks": tree.tree(), "began_ns": 0, "ended_ns": 100 * MS}
    return make_trace(rows, **whole, **facts)


@pytest.mark.parametrize(
    ("inner", "title"),
    [
        ([Frame(LIBRARY, 3, "<module>"), Frame(LIBRARY, 9, "f")], IMPORTING),
        ([Frame("own.py", 3, "<module>")], None),
        ([Frame(DYNAMO, 3, "__call__"), Frame(LIBRARY, 3, "<module>")], COMPILING),
        ([Frame(LIBRARY, 3, "<module>"), Frame(DYNAMO, 3, "<module>")], IMPORTING),
        ([Frame("lib/torch/_dynamo/eval_frame.py", 3, "compile_wrapper")], None),
        ([Frame(INDUCTOR, 3, "_compile_fx_inner")], COMPILING),
        ([Frame(INDUCTOR, 3, "run")], None),
        ([Frame("<string>", 3, "<module>")], None),
        ([Frame(LOADER, 3, "__iter__"), Frame(LOADER, 5, "__init__"), START], STARTING_WORKERS),
        ([Frame(LOADER, 3, "__iter__"), Frame(LOADER, 5, "__init__"), Frame("own.py", 7, "__iter__")], None),
        ([START], None),
        ([Frame(LOADER, 3, "__next__")], None),
    ],
)
def test_a_preparation_is_known_by_the_function_that_leads_into_it(inner: list[Frame], title: str | None) -> None:
    trace = _sampled([], [CELL], [CELL, *inner], [CELL], [CELL])

    assert preparation_ns(trace) == ({title: 25 * MS} if title else {})


def test_the_module_that_a_program_begins_with_is_not_imported() -> None:
    stack = [Frame(LIBRARY, 3, "<module>"), Frame(LIBRARY, 9, "main"), CELL]

    assert preparation_ns(_sampled([], stack)) == {}
    assert preparation_ns(_sampled([], [*stack, Frame(LIBRARY, 4, "<module>")])) == {IMPORTING: 100 * MS}


def test_the_program_waits_for_preparations_of_five_percent() -> None:
    compiling, usual = [CELL, Frame(DYNAMO, 3, "__call__")], [CELL]

    assert waiting(_sampled([], compiling, *[usual] * 19)) == [Waiting(COMPILING, 5 * MS)]
    assert waiting(_sampled([], compiling, *[usual] * 24)) == []


def _steps(*stacks: list[Frame]) -> Trace:
    """Step 0 until 70 ms, and three more of 10 ms, each with an op that takes no time at its start."""
    starts = (0, 70, 80, 90, 100)
    rows = [event("aten::mm", start * MS, start * MS, step=step) for step, start in enumerate(starts)]
    return _sampled(rows, *stacks)


def test_a_slow_first_step_names_its_preparation_if_the_others_cannot_contain_it() -> None:
    compiling = [CELL, Frame(DYNAMO, 3, "__call__")]

    assert ": this is mostly compiling, and " in only(_steps(*[compiling] * 9, [CELL])).evidence
    assert ": this is probably preparation, and " in only(_steps(*[compiling] * 5, *[[CELL]] * 5)).evidence


def _loading(name: str, *stacks: list[Frame], **facts: Any) -> Trace:
    """Two calls of `next`, from 0 to 30 ms and from 50 to 80 ms, and the ops of a training step between."""
    rows = [
        event(name, 0, 30 * MS, kind="scope", line=("cell.py", 1)),
        event("aten::set_", 10 * MS, 11 * MS, line=("cell.py", 9)),
        event("aten::mm", 31 * MS, 49 * MS, line=("cell.py", 2)),
        event(name, 50 * MS, 80 * MS, kind="scope", line=("cell.py", 1)),
    ]
    return _sampled(rows, *stacks, **facts)


def test_the_line_that_input_waits_for_may_run_no_op() -> None:
    get_item = [CELL, Frame(LOADER, 3, "__next__"), Frame("cell.py", 9, "__getitem__")]
    slow = [*get_item, Frame("cell.py", 5, "jitter")]
    stacks = [slow, slow, get_item, [CELL], [CELL], slow, slow, slow, [CELL], [CELL]]

    finding = only(_loading(ALONE, *stacks))

    assert (finding.rule, finding.line) == ("waits_for_input", SourceLine("cell.py", 5))
    assert finding.at_most_ns == 60 * MS


def test_a_stack_that_was_read_after_next_is_not_of_next() -> None:
    step = [CELL, Frame("cell.py", 2, "step")]
    stacks = [[CELL], [CELL], step, [CELL], [CELL], [CELL], [CELL], step, [CELL], [CELL]]

    assert only(_loading(ALONE, *stacks, late_ms=6)).line == SourceLine("cell.py", 9)


def test_starting_workers_counts_for_the_input() -> None:
    starting = [CELL, Frame(LOADER, 3, "__iter__"), START]
    waits = [CELL, Frame(LOADER, 3, "__next__")]
    often = only(_loading(WORKERS, *[waits] * 8, starting, starting))
    seldom = only(_loading(WORKERS, *[waits] * 9, starting))

    assert (often.at_most_ns, seldom.at_most_ns) == (80 * MS, 70 * MS)
    assert often.evidence.endswith(", take 60.0 ms of 100 ms; starting its workers takes 20.0 ms.")
    # The evidence names all that the bound contains.
    assert seldom.evidence.endswith(", take 60.0 ms of 100 ms; starting its workers takes 10.0 ms.")
    assert ("num_workers=0" in often.fix, "num_workers=…" in seldom.fix) == (True, True)
    assert "recorded once with num_workers=0, its lines are shown" in seldom.fix
    # Workers that stay cannot make it slower; more workers can.
    assert (often.certainty, seldom.certainty) == ("certain", "likely")


def test_collections_during_imports_do_not_count() -> None:
    starts = [5 * MS * at for at in range(20)]
    found = Collections(start_ns=starts, duration_ns=[MS] * 20, generation=[2] * 20, track=[0] * 20)
    importing = [CELL, Frame(LIBRARY, 3, "<module>")]
    op = [event("aten::mm", 99 * MS, 100 * MS)]

    assert only(_sampled(op, *[[CELL]] * 20, collections=found)).at_most_ns == 20 * MS
    assert advise(_sampled(op, *[importing] * 10, *[[CELL]] * 10, collections=found)) == ()
