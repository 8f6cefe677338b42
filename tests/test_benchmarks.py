"""The parts of the benchmarks that need no clock: the arithmetic, the table, the programs."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.model.trace import KINDS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
try:
    from benchmarks import child, foreign, report, sampling, verdict_tables
    from benchmarks.__main__ import GROUPS, measured
    from benchmarks.figure import Figure, Spread, at_least, at_most
    from benchmarks.programs import FLAGS, PROGRAMS, Program
    from benchmarks.repeated import repeated
finally:
    sys.path.remove(str(ROOT))

SPREAD = Spread(0.9, 1.0, 1.1)


@pytest.fixture
def native_recorder() -> None:
    """Skips the test where the native recorder is not built."""
    pytest.importorskip("torch")
    from mtprof_nb.capture.native.recorder_loading import why_not

    if reason := why_not():
        pytest.skip(f"no native recorder: {reason}")


def figure(**changed: object) -> Figure:
    facts = {"group": "1 recording", "what": "mlp", "beside": "torch", "value": SPREAD, "rounds": 5, **changed}
    return Figure(**facts)  # type: ignore[arg-type]


def rounds(**ways: list[float]) -> sampling.Rounds:
    count = len(next(iter(ways.values())))
    return sampling.Rounds([{way: {"run": values[at]} for way, values in ways.items()} for at in range(count)])


def test_a_spread_is_the_median_and_the_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 2.0, 4.0, 3.0]) == (2.0, 3.0, 4.0)


def test_the_spread_of_one_sample_is_that_sample() -> None:
    assert Spread.of([7.0]) == (7.0, 7.0, 7.0)


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [
        (at_most(1.2), "yes"),
        (at_most(1.05), "yes ~"),
        (at_most(0.95), "no ~"),
        (at_most(0.5), "no"),
        (at_least(0.5), "yes"),
        (at_least(12), "no"),
        (None, ""),
    ],
)
def test_a_figure_says_whether_its_median_is_within_the_bound_and_how_surely(bound: object, verdict: str) -> None:
    assert figure(bound=bound).verdict == verdict


def test_a_ratio_is_formed_round_by_round_so_that_a_slow_round_cancels_out() -> None:
    measured = rounds(ours=[2.0, 20.0, 200.0], torch=[1.0, 10.0, 100.0])

    assert measured.ratio("run", "ours", "torch") == (2.0, 2.0, 2.0)


def test_added_time_is_what_two_ways_add_to_the_same_base() -> None:
    measured = rounds(ours=[12.0, 12.0, 12.0], its=[18.0, 18.0, 18.0], none=[9.0, 10.0, 11.0])

    assert measured.added("run", "ours", "its", "none").median == 0.25


def test_a_speedup_is_the_peers_time_over_ours() -> None:
    measured = rounds(ours=[1.0, 1.0], torch=[16.0, 16.0])

    assert measured.figure("2", "table", "ours", "torch", "run", is_speedup=True).value.median == 16.0


def test_every_round_takes_each_way_once_and_begins_with_another_one() -> None:
    taken: list[str] = []

    def way(name: str) -> Callable[[], sampling.Sample]:
        def take() -> sampling.Sample:
            taken.append(name)
            return {"run": 1.0}

        return take

    scale = sampling.Scale(1, 1, least_rounds=3, most_rounds=9, seconds=0, sizes=())
    found = sampling.in_turns({name: way(name) for name in "abc"}, scale, seconds=0)

    assert "".join(taken) == "abcbcacab"
    assert len(found) == 3


def test_rounds_end_when_there_are_enough_of_them() -> None:
    scale = sampling.Scale(1, 1, least_rounds=1, most_rounds=4, seconds=0, sizes=())

    assert len(sampling.in_turns({"a": lambda: {"run": 1.0}}, scale, seconds=60)) == 4


def test_the_table_is_aligned_under_its_groups_and_names_what_is_not_held() -> None:
    figures = [
        figure(bound=at_most(1.2)),
        figure(group="2 processing", what="to the table", value=Spread(10.0, 11.0, 11.5), bound=at_least(12)),
        figure(group="2 processing", what="kept", beside="", value=Spread(200, 210, 1234.5), unit="B"),
    ]

    assert report.text(figures).split("\n") == [
        "what          beside  median  quartiles  rounds  bound  holds  behind it",
        "",
        "1 recording",
        "mlp           torch   1 ×     0.9–1.1    5       ≤ 1.2  yes",
        "",
        "2 processing",
        "to the table  torch   11 ×    10–11.5    5       ≥ 12   no",
        "kept                  210 B   200–1,234  5",
        "",
        "1 of 2 bounds hold",
        "not held: 2 processing: to the table",
    ]


def test_the_json_gives_back_every_figure_and_the_machine(tmp_path: Path) -> None:
    figures = [figure(bound=at_least(12), behind="1 ms / 2 ms"), figure(unit="B")]
    path = tmp_path / "new" / "figures.json"
    report.write_json(figures, {"processor": "a machine"}, path)

    assert report.read_json(path) == (figures, {"processor": "a machine"})
    assert json.loads(path.read_text())["figures"][0]["verdict"] == "no"


def test_the_readme_keeps_all_but_the_last_tables(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- figures -->\nthose of last year\n<!-- end of figures -->\nafter\n")
    report.put_into_readme([figure()], {"date": "2026-01-02", "torch": "2.13.0"}, readme)
    written = readme.read_text()

    assert written.startswith("before\n<!-- figures -->\ndate 2026-01-02, torch 2.13.0.\n")
    assert "| mlp | torch | 1 × | 0.9–1.1 | 5 |  |  |  |" in written
    assert "last year" not in written
    assert written.endswith("\n<!-- end of figures -->\nafter\n")


def test_a_readme_without_a_place_for_figures_is_refused(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing here\n")

    with pytest.raises(ValueError, match="no place for figures"):
        report.put_into_readme([figure()], {}, readme)


def test_the_readme_explains_every_group_that_is_measured() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text()

    assert len(GROUPS) == 14
    for number, title in enumerate(
        [
            *("Recording", "Processing", "Memory", "Export", "MindTorch v2", "Growth", "Panel", "Import", "Files"),
            *("Native", "Ranks", "Python's time", "Compiled code"),
        ],
        1,
    ):
        assert f"{number}. **{title}.**" in text


def test_a_child_answers_with_plain_values() -> None:
    assert child.call("math:hypot", 3, 4) == 5


def test_a_child_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="must be real number"):
        child.call("math:hypot", "three")


def test_a_repeated_trace_is_the_same_recording_again_and_again() -> None:
    trace = make_trace(
        [
            event("aten::mm", 100, 150),
            event("MmBackward0", 160, 190, phase="backward", forward=0),
        ],
        allocations=[{"time_ns": 110, "nbytes": 8, "event": 0}],
        began_ns=100,
        ended_ns=200,
    )
    twice = repeated(trace, 4)

    assert twice.start_ns.tolist() == [100, 160, 200, 260]
    assert twice.duration_ns.tolist() == [50, 30, 50, 30]
    assert twice.forward.tolist() == [-1, 0, -1, 2]
    assert twice.correlation_id.tolist() == [1, 2, 3, 4]
    assert twice.allocations is not None
    assert twice.allocations.event.tolist() == [0, 2]
    assert twice.allocations.time_ns.tolist() == [110, 210]
    assert (twice.began_ns, twice.ended_ns) == (100, 300)
    assert np.array_equal(twice.sorted().start_ns, twice.start_ns)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_program_runs_and_is_recorded(program: Program) -> None:
    pytest.importorskip("torch")
    import mtprof_nb

    run = program.prepare(2)
    with mtprof_nb.profile(hook="kineto") as prof:
        run()

    assert len(prof.trace) > 5


def test_the_standard_program_gives_the_events_that_its_figures_speak_of() -> None:
    pytest.importorskip("torch")
    import mtprof_nb

    with mtprof_nb.profile(hook="kineto", **FLAGS["no flags"]) as prof:
        PROGRAMS[0].prepare(4)()
    events_a_step = len(prof.trace) / (4 + 3)

    assert 60_000 <= 200 * events_a_step <= 80_000


@pytest.mark.parametrize("group", ["processing", "exports", "panel", "ranks"])
def test_a_group_can_be_measured_at_the_smallest_scale(group: str) -> None:
    pytest.importorskip("torch")
    figures = [Figure.from_json(one) for one in child.call("benchmarks.__main__:measure", group, "tiny")]

    assert figures
    assert all(figure.rounds == 1 for figure in figures)


def test_a_made_up_trace_has_ops_that_launch_kernels(tmp_path: Path) -> None:
    foreign.write(tmp_path / "made_up.json.gz", 10_000)

    trace = mtp.load(tmp_path / "made_up.json.gz").trace

    kinds = {kind: int((trace.kind == number).sum()) for number, kind in enumerate(KINDS)}
    assert {kind: count for kind, count in kinds.items() if count} == {
        "op": 2_000,
        "runtime": 2_000,
        "kernel": 2_000,
        "scope": 2,
    }
    launched = trace.launch[trace.kind == KINDS.index("kernel")]
    assert (launched >= 0).all()
    assert trace.notes == ()


def _turn(parts: int, is_beside: bool) -> dict[str, Any]:
    times = {"a_ns": [20.0] * 9, "b_ns": [float(parts)] * 9}
    return {"program": "mlp", "parts": parts, "is_beside": is_beside, "seconds": 3.0, **times}


def test_the_table_of_verdicts_counts_answers_and_wrong_ones(tmp_path: Path) -> None:
    turns = [_turn(parts, is_beside) for parts in (20, 26) for is_beside in (False, True, True)]
    wrong = {**_turn(20, is_beside=True), "b_ns": [18.0] * 9}
    recordings = [{"is_beside": False, "steps": {"mlp": [100 + run, 100, 101]}} for run in range(10)]
    text = verdict_tables.tables({"turns": [*turns, wrong], "recordings": recordings})

    assert "| alone | mlp | 1 | 0 | 1 | 0 | 0.000 |" in text
    assert "| beside other work | mlp | 3 | 1 | 2 | 0 | 0.000 |" in text
    assert "1 of 4 are wrong: with 95 % confidence, at most 75.1 of 100 comparisons are." in text
    assert "| +30 % | beside other work | 2 | 2 | 0 | 0 | 0 | 1.300 | 0.000 |" in text
    assert "| one of each | alone | 45 | 0 |" in text
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- verdicts -->\nold\n<!-- end of verdicts -->\nafter\n")
    verdict_tables.put_into(page, text)
    verdict_tables.put_into(page, text)
    assert page.read_text() == f"before\n<!-- verdicts -->\n{text}\n<!-- end of verdicts -->\nafter\n"


@pytest.mark.parametrize(("found", "of", "share"), [(0, 59, 0.0495), (1, 4, 0.7514), (3, 3, 1.0)])
def test_the_largest_share_that_explains_few_cases_is_that_of_the_binomial(found: int, of: int, share: float) -> None:
    assert verdict_tables.largest_share(found, of) == pytest.approx(share, abs=1e-4)


def test_a_group_that_cannot_be_measured_says_why_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MTPROF_RECORDER", "off")

    assert measured(["native"], "tiny") == ([], [])
    reason = "no native recorder: the environment variable MTPROF_RECORDER is 'off'"
    assert capsys.readouterr().err.startswith(f"native       left out: {reason}, in ")


@pytest.mark.usefixtures("native_recorder")
def test_a_stop_of_the_native_recorder_is_measured_with_its_search_for_modules() -> None:
    found = child.call("benchmarks.native.stopping:measure_stop", 1_000)

    assert 0 < found["rest"] < found["stop"]
    assert found["search"] > 0


@pytest.mark.usefixtures("native_recorder")
def test_a_large_cell_is_measured_from_its_end_to_its_panel() -> None:
    found = child.call("benchmarks.native.large_cell:measure", "small ops", 1_000, True)

    assert found["events"] == 1_000
    assert 0 < found["stop"] < found["panel"]
    assert found["sent"] > 10_000
