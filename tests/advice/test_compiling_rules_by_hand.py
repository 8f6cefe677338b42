"""The table, the sentence and the findings about compilations, on hand-made traces."""

import pytest
from rows_by_hand import MS
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.causes.where_time_went import where_time_went
from mtprof_nb.analysis.compiled import compiled_sentence, why_again
from mtprof_nb.model.compilations import Compilation, GraphBreak
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab

BREAK = GraphBreak("/home/me/train.py", 5, "No `print`", hint="Avoid it.\nOr not.")
FIRST = Compilation("0/0", "f", "/home/me/train.py", 3, aot_ns=6 * MS, dynamo_ns=4 * MS)
BACKWARD = FIRST._replace(cause="first backward")
RESUMED = FIRST._replace(compile_id="1/0", function="torch_dynamo_resume_in_f_at_5", line=5)
SIZE = "tensor 'x' size mismatch at index 0. expected 8, actual 9"


def again(version: int, reason: str = SIZE) -> Compilation:
    return FIRST._replace(compile_id=f"0/{version}", cause="again", reason=reason)


def compiled(*facts: Compilation, ran_ms: int = 10, line: int = 9) -> Trace:
    """Compilations of 10 ms one after the other, called from one line, then an op."""
    rows: list[Row] = [
        event(
            f"torch.compile: {one.function}",
            10 * at * MS,
            10 * (at + 1) * MS,
            phase="compiling",
            compilation=one,
            line=("/home/me/train.py", line),
        )
        for at, one in enumerate(facts)
    ]
    end = 10 * len(facts) * MS
    mm = event("mm", end, end + ran_ms * MS, line=("/home/me/train.py", 9))
    whole = {"began_ns": 0, "ended_ns": end + ran_ms * MS}
    return make_trace([*rows, mm], **whole, windows=((0, end + ran_ms * MS),))


def rules(trace: Trace) -> list[str]:
    return sorted(finding.rule for finding in advise(trace))


def test_the_sentence_has_time_causes_and_breaks() -> None:
    trace = compiled(FIRST._replace(breaks=(BREAK,)), BACKWARD, again(1), again(2))

    assert compiled_sentence(trace) == (
        "40.0 ms of 50.0 ms are compiling: 1 first call, 1 first backward pass, "
        "2 again because `x` changed its size (train.py:3); 1 graph break (train.py:5)."
    )
    assert where_time_went(trace).startswith("80 % of this recording is compiling; train.py:9 ")
    assert compiled_sentence(compiled()) == ""


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (SIZE, "`x` changed its size"),
        ("tensor 'L['x']' stride mismatch at index 0", "`x` changed its strides"),
        ("tensor 'y' dtype mismatch. expected Float", "`y` changed its dtype"),
        ("k == 3", "k == 3"),
        ("a" * 100, "a" * 90 + "…"),
    ],
)
def test_torchs_reason_in_a_few_words(reason: str, words: str) -> None:
    assert why_again(reason) == words


def test_the_table_has_a_row_for_each_compilation_and_a_note_for_each_break() -> None:
    trace = compiled(FIRST._replace(breaks=(BREAK._replace(times=2),)), RESUMED, again(1))
    table = Recording(trace).compilations()

    assert [(row.function, row.cause, row.duration_ns) for row in table] == [
        ("f", "first call", 10 * MS),
        ("f, after a graph break", "first call", 10 * MS),
        ("f", "again", 10 * MS),
    ]
    assert (table[0].caller_file, table[0].caller_line) == ("/home/me/train.py", 9)
    assert table.breaks == [BREAK._replace(times=2)]
    assert "2 graph breaks at train.py:5: No `print`; Avoid it." in table.table()
    assert f"again: {SIZE}"[:30] in table.table()
    assert "nothing was compiled" in repr(Recording(compiled()).compilations())


def test_page_text_and_markdown_show_compilations_only_where_there_are_any() -> None:
    with_some, without = compiled(FIRST, again(1)), compiled()

    for written in static_page.bundle(Scene(with_some)).values():
        assert "first call" in written
    for written in static_page.bundle(Scene(without)).values():
        assert "first call" not in written
        assert "Compil" not in written


def test_the_overview_lists_the_longest_compilations_and_the_breaks() -> None:
    first = SummaryTab(Scene(compiled(FIRST._replace(breaks=(BREAK,))))).first()

    assert first["compilations"] == [
        {
            "label": "f",
            "location": "/home/me/train.py:3",
            "why": "first call",
            "stages": "dynamo 4.00 ms, AOT 6.00 ms",
            "time_ns": 10 * MS,
            "share": "50.0 %",
        }
    ]
    assert first["breaks"] == ["1 graph break at train.py:5: No `print`; Avoid it."]


def test_a_function_is_compiled_again_and_again_from_two_times_on() -> None:
    (finding,) = advise(compiled(FIRST, again(1), again(2), ran_ms=100))

    assert (finding.rule, finding.where) == ("recompiled", "train.py:3")
    assert finding.at_most_ns == 20 * MS
    assert "dynamic=True" in finding.fix
    assert rules(compiled(FIRST, again(1), ran_ms=100)) == []


def test_a_reason_other_than_a_size_has_another_fix() -> None:
    (finding,) = advise(compiled(FIRST, again(1, "k == 3"), again(2, "k == 4"), ran_ms=100))

    assert finding.certainty == "likely"
    assert "dynamic=True" not in finding.fix


def test_a_recording_is_mostly_compiling_above_one_half() -> None:
    assert rules(compiled(FIRST, BACKWARD, ran_ms=19)) == ["mostly_compiling"]
    assert rules(compiled(FIRST, BACKWARD, ran_ms=20)) == []


def test_a_break_is_found_where_its_rest_was_compiled() -> None:
    (finding,) = advise(compiled(FIRST._replace(breaks=(BREAK,)), RESUMED, ran_ms=100))

    assert (finding.rule, finding.where) == ("graph_break", "train.py:5")
    assert finding.at_most_ns == 10 * MS
    assert finding.fix == "# Avoid it."
    assert rules(compiled(FIRST, RESUMED, ran_ms=100)) == []


def test_a_break_in_a_library_is_nothing_to_change() -> None:
    broken = BREAK._replace(file="/lib/python3.11/site-packages/torch/optim/sgd.py")

    assert rules(compiled(FIRST._replace(breaks=(broken,)), RESUMED, ran_ms=100)) == []


def test_compiling_as_if_new_is_found_from_three_times_on_one_line() -> None:
    assert rules(compiled(FIRST, FIRST, FIRST, ran_ms=100)) == ["compiled_in_loop"]
    assert rules(compiled(FIRST, FIRST, ran_ms=100)) == []
    assert rules(compiled(FIRST, FIRST, FIRST, ran_ms=1)) == ["compiled_in_loop"]


def test_cuda_graphs_that_are_skipped_are_found_with_torchs_reason() -> None:
    skipped = FIRST._replace(cuda_graph_skipped="skipping due to cpu device.")
    (finding,) = advise(compiled(skipped, ran_ms=100))

    assert finding.rule == "cuda_graphs_skipped"
    assert finding.evidence.startswith("skipping due to cpu device. This")
