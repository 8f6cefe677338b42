"""Which findings are given, in which order, and how they read."""

from typing import Any

import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.advice import advising, rule_registry
from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.model.trace import SourceLine, Trace
from mtprof_nb.tables.advice_list import Advice

MS = 1_000_000


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Rules for one test."""
    known: dict[str, Any] = {}
    monkeypatch.setattr(rule_registry, "RULES", known)
    monkeypatch.setattr(advising, "RULES", known)
    return known


def _trace() -> Trace:
    held = [{"time_ns": 1, "nbytes": 100 << 20, "address": 1, "event": 0}]
    return make_trace([event("aten::mm", 0, 100 * MS)], held, cells={"<ipython-input-3>": "Cell [3]"})


def _finding(ns: int = 0, nbytes: int = 0, **facts: Any) -> Finding:
    return Finding("A title", "Some evidence.", "x = 1", at_most_ns=ns, at_most_bytes=nbytes, **facts)


def test_a_rule_is_registered_once_under_the_name_of_its_function(rules: dict[str, Any]) -> None:
    def slow_thing(trace: Trace) -> Finding | None:
        return None

    rule_registry.rule(slow_thing)

    assert rules == {"slow_thing": slow_thing}
    with pytest.raises(ValueError, match="there is a rule 'slow_thing' already"):
        rule_registry.rule(slow_thing)


def test_nothing_below_five_percent_of_the_time_or_of_the_peak_is_given(rules: dict[str, Any]) -> None:
    rules["a"] = lambda _: _finding(ns=5 * MS - 1)
    rules["b"] = lambda _: _finding(ns=5 * MS)
    rules["c"] = lambda _: _finding(nbytes=(5 << 20) - 1)
    rules["d"] = lambda _: _finding(nbytes=5 << 20)
    rules["e"] = lambda _: None

    assert [finding.rule for finding in advise(_trace())] == ["b", "d"]


def test_no_fix_can_save_more_than_the_recorded_time(rules: dict[str, Any]) -> None:
    rules["a"] = lambda _: _finding(ns=150 * MS)

    (finding,) = advise(_trace())

    assert (finding.at_most_ns, finding.share) == (100 * MS, 1.0)


def test_the_best_comes_first_and_five_are_enough(rules: dict[str, Any]) -> None:
    rules["memory"] = lambda _: _finding(nbytes=90 << 20, certainty=CERTAIN)
    rules["likely"] = lambda _: _finding(ns=50 * MS)
    rules["certain"] = lambda _: _finding(ns=30 * MS, certainty=CERTAIN)
    rules |= {f"small {number}": lambda _: _finding(ns=6 * MS) for number in range(4)}

    assert [finding.rule for finding in advise(_trace())] == ["certain", "likely", "small 0", "small 1", "small 2"]


def test_a_recording_with_missing_ops_gets_no_advice(rules: dict[str, Any]) -> None:
    rules["a"] = lambda _: _finding(ns=50 * MS)

    assert advise(make_trace([event("aten::mm", 0, 100 * MS)], dropped=3)) == ()


def test_a_finding_reads_as_a_sentence_and_the_fix(rules: dict[str, Any]) -> None:
    rules["a"] = lambda _: _finding(ns=50 * MS, line=SourceLine("<ipython-input-3>", 4))
    rules["b"] = lambda _: _finding(nbytes=50 << 20, certainty=CERTAIN)

    time, memory = Advice(_trace())

    assert str(time) == (
        "A title (Cell [3]:4): Some evidence. This is likely; a fix can save at most 50.0 ms (50 % of the time).\n"
        "    x = 1"
    )
    assert str(memory) == (
        "A title: Some evidence. This is certain; a fix can save at most 50.0 MiB (50 % of the peak).\n    x = 1"
    )
    assert repr(Advice(_trace())) == f"{time}\n\n{memory}"


def test_advice_is_a_table_too(rules: dict[str, Any]) -> None:
    pytest.importorskip("pandas")
    rules["a"] = lambda _: _finding(ns=50 * MS)

    frame = Advice(_trace()).to_dataframe()

    assert frame[["rule", "title", "at_most_ns", "share"]].to_dict("records") == [
        {"rule": "a", "title": "A title", "at_most_ns": 50 * MS, "share": 0.5}
    ]


def test_without_a_finding_advice_says_so(rules: dict[str, Any]) -> None:
    assert len(Advice(_trace())) == 0
    assert repr(Advice(_trace())).startswith("no finding")


def _float64(names: str) -> Trace:
    dtypes = {"mixed": ("float", "double"), "plain": ("float", "float")}[names]
    return make_trace([event("aten::mul", 0, 100 * MS, shapes=((9,), (9,)), dtypes=dtypes)], [])


def test_a_fix_is_checked_by_a_comparison_and_by_looking_for_the_finding_again() -> None:
    (finding,) = advise(_float64("mixed"))

    before, after = _float64("mixed"), _float64("plain")
    fixed = mtp.compare(before, after).check(finding)
    same = mtp.compare(before, before).check(finding)

    assert (finding.rule, fixed.is_gone, same.is_gone) == ("float64_in_float32", True, False)
    assert fixed.verdict.answer == "cannot tell"
    assert str(fixed).startswith("float32 becomes float64 here: not found any more; time: cannot tell: ")
    assert str(fixed).endswith("; peak of memory 0 B -> 0 B")


def test_two_functions_are_run_in_turns(rules: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    calls: list[str] = []

    compared = mtp.compare(lambda: calls.append("a"), lambda: calls.append("b"), repeat=2)
    checked = compared.check(_finding(ns=1, rule="a"))

    assert checked.is_gone
    assert {"a", "b"} <= set(calls)
    assert checked.comparison.alternated is not None
