"""Recordings that engines sent, made by hand: clocks, cells, failures."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from traces import event, make_trace

from mtprof_nb.cluster.clock_ping import ClockOffset, clock_offsets, note_of
from mtprof_nb.cluster.engines import Answers, Engines, RanksError, reason
from mtprof_nb.cluster.gathering import gathered
from mtprof_nb.model.common_terms import with_same_cells
from mtprof_nb.model.file import recording_writer
from mtprof_nb.model.trace import OutsideOps, Process, SourceLine, Trace

CELL = "%%mtprofile --quiet\ny = x @ x.T\n"


def of_engine(pid: int, rows: list[dict[str, Any]], host: str = "one", rank: int = -1) -> Trace:
    """A cell that a kernel with this number ran: its file is named after it."""
    file = f"/tmp_of/ipykernel_{pid}/77.py"
    lined = [{**row, "line": (file, 2), "stack": [(file, 2, "<module>")]} for row in rows]
    made = make_trace(
        lined,
        sources={file: CELL},
        cells={file: "Cell [9]"},
        outside={SourceLine(file, 2): OutsideOps(5, 5)},
        windows=((0, 1_000),),
        ended_ns=1_000,
    )
    return replace(made, processes=(Process(pid, rank, host),))


def packed(trace: Trace) -> bytes:
    content = BytesIO()
    recording_writer.write(trace, content)
    return content.getvalue()


def sent(*traces: Trace, missing: dict[int, str] | None = None) -> Answers[bytes]:
    return Answers({number: packed(trace) for number, trace in enumerate(traces)}, missing or {})


def on(*hosts: str, offset_ns: int = 0) -> dict[int, ClockOffset]:
    return {number: ClockOffset(host, offset_ns * number, 50_000) for number, host in enumerate(hosts)}


def test_engines_that_ran_one_cell_have_one_file_with_the_label_of_the_notebook() -> None:
    found = gathered(
        sent(of_engine(1, [event("mm", 0, 10)]), of_engine(2, [event("mm", 0, 30)])), on("one", "one"), "Cell [3]", CELL
    )
    assert found is not None
    assert [process.rank for process in found.trace.processes] == [0, 1]
    assert list(found.trace.cells.values()) == ["Cell [3]"]
    (row,) = found.lines()
    assert (row.where, row.line, row.self_ns, row.outside_ns) == ("Cell [3]", 2, 40, 10)
    assert [facts.outside for facts in found.trace.process_facts] == [
        ((SourceLine("/tmp_of/ipykernel_1/77.py", 2), OutsideOps(5, 5)),)
    ] * 2


def test_a_cell_of_another_text_keeps_the_number_of_the_engine() -> None:
    found = gathered(sent(of_engine(1, [event("mm", 0, 10)])), on("one"), "Cell [3]", "another")
    assert found is not None
    assert list(found.trace.cells.values()) == ["Engine Cell [9]"]


def test_the_same_text_twice_in_one_process_stays_two_cells() -> None:
    one = replace(of_engine(1, [event("mm", 0, 1)]), sources={"<ipython-input-1>": "a", "<ipython-input-2>": "a"})
    assert list(with_same_cells([one, one])[1].sources) == ["<ipython-input-1>", "<ipython-input-2>"]


def test_clocks_of_two_hosts_are_set_by_asking_and_the_error_is_told() -> None:
    traces = [of_engine(1, [event("mm", 100, 200)], "one"), of_engine(1, [event("mm", 600, 700)], "two")]
    found = gathered(sent(*traces), on("one", "two", offset_ns=500), "job")
    assert found is not None
    assert found.trace.start_ns.tolist() == [100, 100]
    assert "Clocks of 2 hosts were set by asking for the time: they agree within 100 µs." in found.trace.notes


def test_on_one_host_no_clock_is_moved() -> None:
    traces = [of_engine(1, [event("mm", 100, 200)]), of_engine(2, [event("mm", 600, 700)])]
    found = gathered(sent(*traces), on("one", "one", offset_ns=500), "job")
    assert found is not None
    assert (found.trace.start_ns.tolist(), found.trace.notes) == ([100, 600], ())


def test_what_is_missing_is_told_and_the_rest_is_kept() -> None:
    answers = sent(of_engine(1, [event("mm", 0, 10)], rank=0), missing={1: "it died"})
    found = gathered(answers, on("one"), "job", notes=["Engine 0 failed with ValueError: recorded until then."])
    assert found is not None
    assert found.trace.notes == (
        "Engine 0 failed with ValueError: recorded until then.",
        "Engine 1 is missing: it died.",
    )
    assert gathered(Answers({}, {0: "it died"}), {}, "job") is None


class Failing(Exception):
    ename, evalue = "ModuleNotFoundError", "No module named 'mtprof_nb'"


class Result:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get(self, timeout: float | None) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Client:
    """Stands in for a client of ipyparallel whose engines answer as told; one that is not there is an IndexError."""

    def __init__(self, **answers: Any) -> None:
        self._answers = {int(name.removeprefix("engine")): answer for name, answer in answers.items()}
        self.ids = list(self._answers)

    def __getitem__(self, engine: int) -> Any:
        answer = self._answers[engine] if engine in self._answers else (_ for _ in ()).throw(IndexError(engine))

        class View:
            def apply_async(self, function: Any, *arguments: Any) -> Result:
                return Result(next(answer) if hasattr(answer, "__next__") else answer)

        return View()


class View:
    def __init__(self, client: Client, targets: Any = "all") -> None:
        self.client, self.targets = client, targets


def test_engines_answer_or_the_reason_is_told() -> None:
    class EngineError(Exception):
        pass

    client = Client(engine0=7, engine1=EngineError("Engine 1 died"), engine2=TimeoutError(), engine4=Failing())
    engines = Engines(View(client, [0, 1, 2, 3, 4]))
    answers = engines.ask(len)
    assert answers.given == {0: 7}
    assert answers.missing[1] == answers.missing[3] == "it died"
    assert answers.missing[2].startswith("it does not answer")
    assert answers.missing[4].endswith("install mtprof_nb where the engines run")
    with pytest.raises(RanksError, match="engine 1 cannot be used: it died"):
        engines.ask_all(len)
    assert reason(ValueError("no")) == "ValueError: no"


def test_a_view_without_engines_is_an_error_with_the_remedy() -> None:
    with pytest.raises(RanksError, match="no engines: start some"):
        Engines(View(Client()))
    assert Engines(View(Client(engine0=1, engine1=2), 1)).ids == [1]


def test_the_quickest_of_several_questions_sets_the_clock_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked and answered; the third question of each takes the shortest time.
    moments = [0, 100, 1000, 1100, 2000, 2010, 3000, 3100, 4000, 4100]
    times = iter(moments * 2)
    monkeypatch.setattr("mtprof_nb.cluster.clock_ping.time.time_ns", lambda: next(times))

    def answers(host: str, ahead_ns: int) -> Any:
        return iter((host, ns) for ns in [0, *(ahead_ns + at for at in (50, 1050, 2005, 3050, 4050))])

    client = Client(engine0=answers("near", 0), engine1=answers("far", 500), engine2=("far", 0))
    offsets = clock_offsets(Engines(View(client)))
    assert offsets == {0: ClockOffset("near", 0, 5), 1: ClockOffset("far", 500, 5), 2: ClockOffset("far", 500, 5)}
    assert note_of(offsets) == "Clocks of 2 hosts were set by asking for the time: they agree within 0.010 µs."


def test_engines_on_one_host_have_one_clock() -> None:
    client = Client(engine0=("near", 1), engine1=("near", 9))
    assert clock_offsets(Engines(View(client))) == {0: ClockOffset("near", 0, 0), 1: ClockOffset("near", 0, 0)}
