"""`compare`: what it takes, what it refuses, and what it returns."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rank_traces import job
from two_programs import run

import mtprof_nb
from mtprof_nb import Comparison, compare
from mtprof_nb.comparison import alternation
from mtprof_nb.errors import LoadError, SessionError
from mtprof_nb.recording import Recording

BEFORE = run(("aten::mm", 100), ("aten::add", 20), steps=4)
AFTER = run(("aten::mm", 100), steps=4)


@pytest.fixture
def blocks_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function is called twice to learn how long it takes, then once in each block."""
    monkeypatch.setattr(alternation, "_block", lambda _ns: alternation.TimedBlock(1, 1))
    monkeypatch.setattr(alternation, "_CALIBRATION_NS", 1)


def _names(found: Comparison) -> set[str]:
    return {change.name for change in found.changes}


def test_traces_and_recordings_are_compared() -> None:
    found = compare(BEFORE, Recording(AFTER))

    assert _names(found) == {"ops", "aten::add"}
    assert found.verdict.answer == "cannot tell"
    assert found.traces == ((BEFORE,), (AFTER,))


def test_files_are_loaded(tmp_path: Path) -> None:
    Recording(BEFORE).save(tmp_path / "before.mtp")
    Recording(AFTER).save(tmp_path / "after.mtp")

    found = compare(tmp_path / "before.mtp", str(tmp_path / "after.mtp"))

    assert _names(found) == {"ops", "aten::add"}
    assert found.labels == ("before", "after")


def test_lists_are_several_runs_of_each_side() -> None:
    found = compare([BEFORE] * 4, (Recording(AFTER),) * 5)

    assert [len(runs) for runs in found.traces] == [4, 5]
    assert "ops" in _names(found)


def test_a_finished_profile_is_a_recording_though_it_can_be_called() -> None:
    torch = pytest.importorskip("torch")
    with mtprof_nb.profile() as prof:
        torch.ones(2)

    assert compare(prof, prof).labels == ("a", "b")
    assert compare(BEFORE, prof, names=("old", "new")).labels == ("old", "new")


def test_a_file_that_is_missing_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="nowhere"):
        compare(BEFORE, tmp_path / "nowhere.mtp")


@pytest.mark.parametrize(
    ("a", "b", "options", "error", "message"),
    [
        (BEFORE, 3, {}, TypeError, "cannot compare 3"),
        (BEFORE, len, {}, TypeError, "two functions"),
        (BEFORE, [], {}, ValueError, "empty list"),
        (BEFORE, AFTER, {"repeat": 5}, TypeError, "for two functions"),
        (BEFORE, AFTER, {"seconds": 5}, TypeError, "for two functions"),
        (BEFORE, AFTER, {"matters": 0}, ValueError, "matters must be above 0"),
        (list, dict, {"repeat": 0}, ValueError, "repeat must be above 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    a: object, b: object, options: dict[str, float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare(a, b, **options)


@pytest.mark.usefixtures("blocks_of_one_call")
class TestFunctions:
    """Two functions; their real times decide nothing here."""

    def test_they_are_measured_and_recorded(self) -> None:
        torch = pytest.importorskip("torch")
        x = torch.ones(4, 4)

        def product() -> None:
            x @ x

        def power() -> None:
            torch.linalg.matrix_power(x, 1)
            x + x

        found = compare(product, power, repeat=7)

        assert found.labels == ("product", "power")
        assert found.alternated is not None
        assert len(found.alternated.a_ns) == len(found.alternated.b_ns) == 7
        assert found.differences[0].level == "call"
        assert found.differences[0].verdict == found.verdict
        changes = {change.name: change for change in found.changes}
        assert (changes["aten::mm"].a, changes["aten::mm"].b) == (1.0, None)
        assert (changes["aten::add"].a, changes["aten::add"].b) == (None, 1.0)
        lines = {row.name: row.change for row in found.differences if row.level == "line"}
        assert lines == {"x + x": "edited", "torch.linalg.matrix_power(x, 1)": "new"}

    def test_too_few_pairs_cannot_tell(self) -> None:
        found = compare(_nothing, _nothing, repeat=7)

        assert found.verdict.answer == "cannot tell"
        assert "fewer than eight" in found.verdict.why

    def test_an_interrupt_leaves_the_times_that_there_are(self) -> None:
        found = compare(_nothing, _interrupted_after(5), repeat=20)

        assert found.notes == ("Interrupted after 3 of 20 pairs: the verdict is on these.",)
        assert [row.level for row in found.differences] == ["call"]
        assert found.traces == ((), ())

    def test_an_error_of_a_function_arrives(self) -> None:
        def fails() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            compare(_nothing, fails)

    def test_an_active_recording_is_refused(self) -> None:
        with mtprof_nb.profile(name="outer"), pytest.raises(SessionError, match="'outer' is recording"):
            compare(_nothing, _nothing)


def _nothing() -> None:
    """Return at once."""


def _interrupted_after(calls: int) -> Callable[[], None]:
    left = iter(range(calls))

    def run() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return run


def test_a_data_frame_has_a_row_for_each_difference() -> None:
    pytest.importorskip("pandas")

    frame = compare(BEFORE, AFTER).to_dataframe()

    assert list(frame["level"]) == ["step", "whole", "phase", "op", "op"]
    assert list(frame["name"]) == ["median step", "wall time", "forward", "aten::add", "aten::mm"]
    assert list(frame["a_ns"]) == [120, 480, 480, 80, 400]
    assert list(frame["delta_ns"]) == [-20, -80, -80, -80, 0]
    assert list(frame["change"]) == ["", "", "", "gone", ""]
    assert frame["ratio"].dtype == float
    assert frame["low"].isna().all()


def test_representation_and_show_are_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(BEFORE, AFTER, names=("old", "new"))

    found.show()

    assert capsys.readouterr().out == f"{found!r}\n"
    assert repr(found).startswith("new against old: cannot tell, 0.83 × the time\n")


def test_recordings_of_several_ranks_are_compared() -> None:
    found = compare(job(ranks=3, slow=1), job(ranks=3, slow=-1))

    assert _names(found) == {"ops", "aten::sort", "loss.sort()"}
